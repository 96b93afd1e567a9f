"""The page's colours and type, as a gradio theme. Every pair of text and background colours has ample contrast in light
and in dark mode."""

import gradio as gr

SANS = ["ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"]

PAPER, CARD, INK, SOFT, LINE = "#f3f2ee", "#ffffff", "#1b2432", "#505a6b", "#d8dbe2"
NIGHT, SLAB, CHALK, MIST, SEAM = "#0b0e14", "#171c26", "#e9edf4", "#a9b3c4", "#343c4b"
BLUE, BLUE_DEEP, SKY = "#1a5d99", "#144a7c", "#8abaf0"


def theme() -> gr.themes.Base:
    """Return the theme: warm paper and ink in light mode, slate and chalk in dark mode. It uses system fonts only."""
    base = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="stone",
        radius_size="md",
        spacing_size="md",
        font=SANS,
        font_mono=MONO,
    )
    return base.set(
        body_background_fill=PAPER,
        body_background_fill_dark=NIGHT,
        body_text_color=INK,
        body_text_color_dark=CHALK,
        body_text_color_subdued=SOFT,
        body_text_color_subdued_dark=MIST,
        background_fill_primary=CARD,
        background_fill_primary_dark=SLAB,
        background_fill_secondary=PAPER,
        background_fill_secondary_dark=NIGHT,
        border_color_primary=LINE,
        border_color_primary_dark=SEAM,
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_border_width="0px",
        block_padding="0px",
        block_shadow="none",
        block_label_text_color=SOFT,
        block_label_text_color_dark=MIST,
        block_title_text_color=INK,
        block_title_text_color_dark=CHALK,
        block_title_text_weight="600",
        block_info_text_color=SOFT,
        block_info_text_color_dark=MIST,
        input_background_fill=CARD,
        input_background_fill_dark=SLAB,
        input_background_fill_focus=CARD,
        input_background_fill_focus_dark=SLAB,
        input_border_color="#828a99",
        input_border_color_dark="#6b7383",
        input_border_color_focus=BLUE,
        input_border_color_focus_dark=SKY,
        input_border_width="1px",
        input_placeholder_color="#626b7a",
        input_placeholder_color_dark="#9aa0ac",
        input_shadow="none",
        input_shadow_focus="0 0 0 3px rgb(26 93 153 / 0.25)",
        input_shadow_focus_dark="0 0 0 3px rgb(143 184 238 / 0.35)",
        button_primary_background_fill=BLUE,
        button_primary_background_fill_dark="#2a64b2",
        button_primary_background_fill_hover=BLUE_DEEP,
        button_primary_background_fill_hover_dark="#2559a0",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        button_secondary_background_fill=CARD,
        button_secondary_background_fill_dark=SLAB,
        button_secondary_background_fill_hover="#e9ebef",
        button_secondary_background_fill_hover_dark="#262b35",
        button_secondary_border_color="#828a99",
        button_secondary_border_color_dark="#6b7383",
        button_secondary_text_color=INK,
        button_secondary_text_color_dark=CHALK,
        button_border_width="1px",
        button_large_padding="8px 14px",
        button_large_text_size="*text_md",
        button_large_text_weight="600",
        slider_color=BLUE,
        slider_color_dark=SKY,
        checkbox_border_color="#828a99",
        checkbox_border_color_dark="#6b7383",
        checkbox_background_color_selected=BLUE,
        checkbox_background_color_selected_dark="#2a64b2",
        checkbox_label_background_fill="transparent",
        checkbox_label_background_fill_dark="transparent",
        checkbox_label_background_fill_selected="transparent",
        checkbox_label_background_fill_selected_dark="transparent",
        checkbox_label_text_color_selected=INK,
        checkbox_label_text_color_selected_dark=CHALK,
        checkbox_label_border_width="0px",
        checkbox_label_border_width_dark="0px",
        checkbox_label_padding="2px 0px",
        checkbox_label_shadow="none",
        link_text_color=BLUE,
        link_text_color_dark=SKY,
        accordion_text_color=INK,
        accordion_text_color_dark=CHALK,
        panel_border_width="0px",
        section_header_text_size="*text_md",
    )


def variables() -> str:
    """Return the theme's colours and sizes as CSS variables, for the page and for ``.dark`` within it."""
    return theme()._get_theme_css()
