"""The one exception that speaks to the user."""


class UserError(Exception):
    """Something the user can mend. The message is one clear sentence.

    The command line prints it and exits with code 2; the page shows it. Anything else that
    is raised is our own mistake and keeps its traceback.
    """
