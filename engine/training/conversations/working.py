"""Requests that give material to work on, or a task: code, edits, summaries, extraction, JSON, translation, sums."""

from __future__ import annotations

import json
import random
import re

from engine.training.conversations.material import Material
from engine.training.conversations.topics import (
    COLOURS,
    FAMILY_NAMES,
    FIRST_NAMES,
    ITEMS,
    JOBS,
    LANGUAGES,
    SUBJECTS,
    TOWNS,
)
from engine.training.generators import examples
from engine.training.generators.arithmetic import easy_sum, large_sum

LONGEST_CODE = 700  # characters
CODE_ORDERS = [
    "{}", "{} Write it in Python.", "{} Add a docstring.", "{} Add comments that explain each step.", "{} Show how to call it.",
    "{} Include a few tests.", "{} Then explain how it works.", "{} Use type hints.", "{} Do not use any imports.",
]  # fmt: skip
OTHER_LANGUAGES = ["JavaScript", "Java", "C", "Go", "Rust", "Ruby", "TypeScript", "Bash"]
PROGRAM_ORDERS = [
    "Explain what this code does:", "Add comments to this code:", "Rewrite this function with clearer names:",
    "Write tests for this function:", "What is the time complexity of this function?", "Is there a bug in this code?",
    "Simplify this code:", "Add type hints to this function:", "Turn this function into a class:", "Copy this code exactly:",
    "Rename the function to `solve` and show the whole code again:", "Add error handling to this function:",
]  # fmt: skip
TASKS = [
    "Write a Python function that {}.", "Write a short Python script that {}.", "How do I write a program that {}?",
    "Write a {language} function that {}.", "Show me code that {}.",
]  # fmt: skip
DEEDS = [
    "reads a CSV file and prints the average of a column", "counts the words in a text file", "checks whether a string is a palindrome",
    "returns the n-th Fibonacci number", "sorts a list of dictionaries by a key", "removes duplicates from a list and keeps the order",
    "merges two sorted lists", "finds the longest word in a sentence", "converts Celsius to Fahrenheit", "validates an email address",
    "reverses a linked list", "implements a stack with push and pop", "implements binary search", "computes the factorial of a number",
    "finds all prime numbers below n", "flattens a nested list", "counts the vowels in a string", "draws a triangle of stars",
    "rolls two dice and prints the sum", "reads JSON from a file and prints one field", "downloads a web page and counts its links",
    "groups words by their first letter", "transposes a matrix", "computes the greatest common divisor", "checks balanced brackets",
    "encodes a text with a Caesar cipher", "prints a multiplication table", "simulates a coin toss a thousand times",
    "formats a number of seconds as hours, minutes and seconds", "finds the two numbers in a list that add up to a target",
    "implements a queue with two stacks", "prints a calendar for a month", "renames all files in a folder", "measures how long a function takes",
    "retries a function three times", "parses command line arguments", "computes a moving average", "splits a list into chunks",
    "finds the most common element of a list", "converts a Roman numeral to an integer", "checks whether two words are anagrams",
    "keeps a to-do list in a file", "implements a small bank account class", "plays tic-tac-toe in the terminal",
]  # fmt: skip
EDITS = [
    "Correct the grammar and spelling:", "Rewrite this in the past tense:", "Rewrite this in the present tense:",
    "Make this text shorter:", "Make this more formal:", "Make this friendlier:", "Rewrite this for a young child:",
    "Replace '{old}' with '{new}' in this text and change nothing else:", "Copy this text and add one sentence at the end:",
    "Rewrite this from the point of view of another character:", "Put this text into bullet points:", "Write this text again in capital letters:",
    "Repeat this text exactly:", "Split this into short sentences:", "Add a title to this text and repeat it:",
    "Rewrite this with more adjectives:", "Rewrite this without adjectives:", "Turn this into a dialogue:",
]  # fmt: skip
SUMMARIES = [
    "Summarise this text in one sentence:", "Summarise the following in three bullet points:", "What is the main idea of this text?",
    "Give a short summary:", "TL;DR:", "Write a headline for this text:", "Explain the moral of this story:",
    "Summarize the following passage in two sentences:", "What happens in this story?",
]  # fmt: skip
EXTRACTIONS = [
    "List all the names in this text:", "Which animals appear in this text?", "Who is the main character of this text?",
    "List the verbs in this text:", "What is the mood of this text?", "Where does this take place?",
    "Answer with a JSON object with the keys title, characters and place for this text:", "Write three questions about this text:",
    "Continue this story:", "What could happen next?", "Find the longest sentence of this text and copy it:",
]  # fmt: skip
TRANSLATIONS = [
    "Translate into {language}: {text}", "How do you say '{text}' in {language}?", "Translate this sentence to {language} and explain the grammar: {text}",
    "Translate this into {language}, then back into English: {text}",
]  # fmt: skip
SUMS = [
    "What is {}?", "Calculate {}.", "How much is {}? Show your work.", "{} = ?", "Compute {} step by step.", "Solve: {}",
]  # fmt: skip
PROBLEM_ORDERS = [
    "{}", "{}", "{} Think step by step.", "{} Explain your answer.", "{} Give only the final number.", "Solve this problem: {}",
    "{} Show each step on its own line.",
]  # fmt: skip


def code(rng: random.Random, material: Material) -> str:
    """A request to write a program."""
    if material.programs and rng.random() < 0.35:
        task, _ = rng.choice(material.programs)
        return rng.choice(CODE_ORDERS).format(task)
    deed, language = rng.choice(DEEDS), rng.choice(OTHER_LANGUAGES)
    task_text = rng.choice(TASKS).format(deed, language=language)
    return rng.choice(CODE_ORDERS).format(task_text)


def program(rng: random.Random, material: Material) -> str:
    """A request to explain or change a program."""
    if material.programs and rng.random() < 0.8:
        _, source = rng.choice(material.programs)
    else:
        example = next(examples("code", rng.randrange(1 << 30), material.vocabulary))
        source = example.text
    return f"{rng.choice(PROGRAM_ORDERS)}\n\n```python\n{source[:LONGEST_CODE].strip()}\n```"


def edit(rng: random.Random, material: Material) -> str:
    text = material.passage(rng, rng.choice([300, 500, 800]))
    words = [word for word in re.findall(r"[a-z]{4,}", text)] or ["word"]
    order = rng.choice(EDITS).format(
        old=rng.choice(words), new=rng.choice(material.vocabulary.words)
    )
    return f"{order}\n\n{text}"


def summary(rng: random.Random, material: Material) -> str:
    return f"{rng.choice(SUMMARIES)}\n\n{material.passage(rng)}"


def extraction(rng: random.Random, material: Material) -> str:
    return f"{rng.choice(EXTRACTIONS)}\n\n{material.passage(rng, rng.choice([400, 800]))}"


def translation(rng: random.Random, material: Material) -> str:
    form = rng.choice(TRANSLATIONS)
    return form.format(language=rng.choice(LANGUAGES), text=material.sentence(rng))


def arithmetic(rng: random.Random, material: Material) -> str:
    """A request to solve a sum, or an arithmetic problem in words."""
    if material.problems and rng.random() < 0.6:
        return rng.choice(PROBLEM_ORDERS).format(rng.choice(material.problems))
    a, operator, b = easy_sum(rng) if rng.random() < 0.5 else large_sum(rng)
    sum_ = f"{a} {operator} {b}"
    if rng.random() < 0.3:
        sum_ += f" {rng.choice('+-')} {rng.randint(2, 99)}"
    return rng.choice(SUMS).format(sum_)


def _person(rng: random.Random) -> dict:
    return {
        "name": f"{rng.choice(FIRST_NAMES)} {rng.choice(FAMILY_NAMES)}",
        "age": rng.randint(18, 80),
        "town": rng.choice(TOWNS),
        "job": rng.choice(JOBS).partition(" ")[2],
    }


def _article(rng: random.Random) -> dict:
    return {
        "item": rng.choice(ITEMS),
        "colour": rng.choice(COLOURS),
        "price": rng.randint(3, 400),
        "stock": rng.randint(0, 60),
    }


def record(rng: random.Random, material: Material) -> str:
    """A request to write, read or change JSON or a table."""
    make = rng.choice([_person, _article])
    rows = [make(rng) for _ in range(rng.randint(1, 4))]
    keys = ", ".join(rows[0])
    described = "; ".join(
        ", ".join(f"{key}: {value}" for key, value in row.items()) for row in rows
    )
    written = json.dumps(rows, indent=rng.choice([None, 2]), ensure_ascii=False)
    number = rng.randint(2, 6)
    return rng.choice(
        [
            f"Write this as JSON with the keys {keys}: {described}",
            f"Turn this into a Markdown table: {described}",
            f"Write {number} JSON records with the keys {keys}. Invent the values.",
            f"Write a CSV file with the columns {keys} and {number} rows.",
            f"Convert this JSON to YAML:\n{written}",
            f"Describe this JSON in words:\n{written}",
            f"Add a key 'id' to each object and print the JSON again:\n{written}",
            f"Which entry comes first in the alphabet?\n{written}",
            f"Write a JSON object about {rng.choice(SUBJECTS)} with the keys title, summary and tags.",
            f"Write a JSON schema for objects with the keys {keys}.",
            f"Extract the keys {keys} from this note as a JSON object: {_sentence_of(rows[0])}",
        ]
    )


def _sentence_of(row: dict) -> str:
    if "town" in row:
        return (
            f"{row['name']}, who is {row['age']} and lives in {row['town']}, works as {row['job']}."
        )
    return f"We have {row['stock']} pieces of the {row['colour']} {row['item']} at {row['price']} euros each."


def items(rng: random.Random, material: Material) -> str:
    """A request to sort, reverse, filter or count a list."""
    pool = rng.choice([ITEMS, FIRST_NAMES, TOWNS, COLOURS, [str(n) for n in range(100)]])
    list_text = ", ".join(rng.sample(pool, rng.randint(4, 9)))
    return rng.choice(
        [
            f"Sort this list: {list_text}",
            f"Reverse the order of these: {list_text}",
            f"Number these items: {list_text}",
            f"Which of these is the longest word? {list_text}",
            f"Put these into a bulleted list: {list_text}",
            f"Repeat this list, then say how many items it has: {list_text}",
            f"Write one sentence about each of these: {list_text}",
            f"Group these in a sensible way: {list_text}",
        ]
    )
