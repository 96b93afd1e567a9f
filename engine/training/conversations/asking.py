"""Requests that need only knowledge: questions, explanations, comparisons, advice, lists."""

from __future__ import annotations

import random

from engine.training.conversations.material import Material
from engine.training.conversations.topics import (
    ANIMALS,
    ARTS,
    DAILY,
    HISTORY,
    JOBS,
    PLACES,
    SCIENCE,
    SOCIETY,
    SUBJECTS,
    TECHNOLOGY,
)

AUDIENCES = [
    "a child", "a ten-year-old", "a beginner", "a student", "my grandmother", "a busy manager", "someone who has never heard of it",
    "a class of teenagers", "an engineer", "a curious friend",
]  # fmt: skip
LENGTHS = [
    "", "", "", " Keep it short.", " Answer in one paragraph.", " Use at most three sentences.", " Give an example.",
    " Use simple words.", " Use bullet points.", " Please be detailed.", " Explain step by step.",
]  # fmt: skip
QUESTIONS = {
    "science": (
        SCIENCE,
        [
            "What is the idea behind {}?", "How does our understanding of {} help us in daily life?", "Why is {} important?",
            "What are three facts about {}?", "Who first studied {}?", "What would happen without {}?",
            "What do people often get wrong about {}?", "How do scientists study {}?", "What causes {} to change?",
        ],
    ),
    "technology": (
        TECHNOLOGY,
        [
            "How do engineers use {}?", "What problem does the idea of {} solve?", "What are the pros and cons of {}?",
            "When should I not use {}?", "What should a beginner know about {}?", "What is the future of {}?",
            "Give me an analogy for {}.", "What are common mistakes people make with {}?",
        ],
    ),
    "history": (
        HISTORY,
        [
            "When and where did {} begin?", "What were the causes of {}?", "What changed because of {}?",
            "Who were the most important people in {}?", "Why do we still talk about {}?", "Give a short timeline of {}.",
            "How did ordinary people live at the time of {}?",
        ],
    ),
    "society": (
        SOCIETY,
        [
            "Why does {} matter?", "What are arguments for and against {}?", "How has {} changed in the last fifty years?",
            "What are the main challenges of {}?", "How can a small town improve {}?", "What does {} mean for young people?",
        ],
    ),
    "arts": (
        ARTS,
        [
            "How did {} begin?", "What makes {} special?", "How do I start with {}?", "Name some famous examples of {}.",
            "How has {} changed over time?", "What should I look for in {}?",
        ],
    ),
    "places": (
        PLACES,
        [
            "What is {} famous for?", "What is the best time of the year to visit {}?", "What food should I try in {}?",
            "Plan three days in {} for me.", "What is the history of {} in a few sentences?", "What is the weather like in {}?",
            "What are polite and impolite things to do in {}?",
        ],
    ),
    "animals": (
        ANIMALS,
        [
            "What do {} eat?", "Where do {} live?", "How do {} communicate?", "How do {} raise their young?",
            "What are interesting facts about {}?", "Why are {} important for nature?", "How long do {} live?",
        ],
    ),
    "daily": (
        DAILY,
        [
            "Give me tips for {}.", "What do I need for {}?", "What are the steps of {}?", "How can I get better at {}?",
            "What are common mistakes in {}?", "How long does it take to learn about {}?", "Write a checklist for {}.",
        ],
    ),
    "jobs": (
        JOBS,
        [
            "What does {} do all day?", "How do I become {}?", "What skills does {} need?", "What questions should I ask {}?",
            "What is hard about being {}?",
        ],
    ),
}  # fmt: skip
EXPLANATIONS = [
    "Explain {topic} to {who}.{how}",
    "Explain {topic}.{how}",
    "Can you explain {topic} in simple terms?{how}",
    "I don't understand {topic}. Can you help me?{how}",
    "Describe {topic} to {who}.{how}",
    "Teach me about {topic}.{how}",
    "Tell me about {topic}.{how}",
    "Write a short introduction to {topic} for {who}.{how}",
    "What is the most important thing to know about {topic}?{how}",
    "Summarise what is known about {topic}.{how}",
]
COMPARISONS = [
    "What is the difference between {} and {}?",
    "Compare {} and {}.",
    "Which is more useful in everyday life: {} or {}? Why?",
    "What do {} and {} have in common?",
    "Make a table with two columns that compares {} and {}.",
    "How are {} and {} related?",
]
LISTS = [
    "List {n} facts about {topic}.",
    "Give me {n} reasons why people like {topic}.",
    "Name {n} books or films about {topic}.",
    "Write {n} quiz questions about {topic}, with answers.",
    "List {n} words that come to mind when you think of {topic}.",
    "Suggest {n} titles for an article about {topic}.",
    "Give {n} tips for someone who is new to {topic}.",
    "What are {n} interesting questions about {topic}?",
    "Name {n} ideas for a school project about {topic}.",
]
DEFINITIONS = [
    "Define {}.",
    "What does the term '{}' mean?",
    "Give a one-sentence definition of {}.",
    "What is meant by {}? Give two examples.",
    "Use '{}' in three different sentences.",
]
OPINIONS = [
    "Is it a good idea to learn about {}? Give reasons.",
    "Write a short argument for spending more money on {}.",
    "Write a short paragraph that argues against {}.",
    "True or false: {} is easy to understand. Explain.",
    "What would you say to someone who thinks that {} is boring?",
]


def question(rng: random.Random, material: Material) -> str:
    topics, forms = QUESTIONS[rng.choice(list(QUESTIONS))]
    return rng.choice(forms).format(rng.choice(topics)) + rng.choice(LENGTHS)


def explanation(rng: random.Random, material: Material) -> str:
    form, topic, who = rng.choice(EXPLANATIONS), rng.choice(SUBJECTS), rng.choice(AUDIENCES)
    return form.format(topic=topic, who=who, how=rng.choice(LENGTHS))


def comparison(rng: random.Random, material: Material) -> str:
    field = rng.choice([SCIENCE, TECHNOLOGY, HISTORY, SOCIETY, ARTS, DAILY, PLACES, ANIMALS])
    return rng.choice(COMPARISONS).format(*rng.sample(field, 2)) + rng.choice(LENGTHS)


def listing(rng: random.Random, material: Material) -> str:
    number = rng.choice(["three", "four", "five", "six", "seven", "ten", "3", "5", "8", "10"])
    return rng.choice(LISTS).format(n=number, topic=rng.choice(SUBJECTS))


def definition(rng: random.Random, material: Material) -> str:
    return rng.choice(DEFINITIONS).format(rng.choice(SUBJECTS))


def opinion(rng: random.Random, material: Material) -> str:
    return rng.choice(OPINIONS).format(rng.choice(SUBJECTS)) + rng.choice(LENGTHS)
