"""Lists of topics for requests, by field, and of people, places and things that occur in requests."""

from __future__ import annotations


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.replace("\n", " ").split(",") if phrase.strip()]


SCIENCE = _phrases("""
    photosynthesis, gravity, black holes, the water cycle, plate tectonics, evolution, DNA, the immune system, vaccines,
    antibiotics, the periodic table, chemical bonds, acids and bases, friction, magnetism, electricity, sound waves, light,
    lasers, radio waves, nuclear fusion, radioactivity, entropy, the speed of light, relativity, quantum mechanics, atoms,
    molecules, cells, bacteria, viruses, fungi, enzymes, proteins, the nervous system, the heart, the lungs, digestion,
    sleep, memory, dreams, the human eye, hearing, taste, the ozone layer, the greenhouse effect, clouds, thunderstorms,
    hurricanes, earthquakes, volcanoes, tides, ocean currents, coral reefs, rainforests, deserts, glaciers, fossils,
    dinosaurs, meteors, comets, the moon, the sun, the planets, galaxies, the big bang, telescopes, satellites, rockets,
    the seasons, soil, pollination, symbiosis, food chains, migration of birds, hibernation, camouflage, metamorphosis
""")
TECHNOLOGY = _phrases("""
    the internet, computers, microprocessors, databases, operating systems, compilers, encryption, passwords, search engines,
    machine learning, neural networks, recommendation systems, robots, electric cars, batteries, solar panels, wind turbines,
    3D printing, GPS, bluetooth, Wi-Fi, cloud computing, virtual reality, digital cameras, touch screens, bar codes,
    version control, unit tests, recursion, hash tables, binary search, sorting algorithms, linked lists, stacks and queues,
    graphs, regular expressions, object-oriented programming, functional programming, APIs, JSON, HTML, CSS, SQL,
    caching, load balancing, threads, garbage collection, memory leaks, debugging, open source software, blockchains
""")
HISTORY = _phrases("""
    the Roman Empire, ancient Egypt, ancient Greece, the Silk Road, the Vikings, the Middle Ages, the Renaissance,
    the printing press, the Black Death, the Age of Exploration, the Industrial Revolution, the French Revolution,
    the American Civil War, the First World War, the Second World War, the Cold War, the fall of the Berlin Wall,
    the space race, the moon landing, the Great Depression, the Ottoman Empire, the Inca Empire, the Aztecs, the Maya,
    the Mongol Empire, feudal Japan, the Great Wall of China, the Magna Carta, women's suffrage, the civil rights movement,
    the abolition of slavery, the invention of the wheel, the discovery of penicillin, the Olympic Games, the United Nations
""")
SOCIETY = _phrases("""
    inflation, supply and demand, interest rates, taxes, stock markets, insurance, budgets, trade, unemployment, globalisation,
    democracy, elections, constitutions, human rights, the rule of law, public transport, cities, recycling, renewable energy,
    climate change, biodiversity, organic farming, fair trade, education, libraries, museums, journalism, advertising,
    social media, privacy, ethics, philosophy, stoicism, psychology, motivation, habits, stress, friendship, teamwork,
    leadership, negotiation, public speaking, critical thinking, creativity, cultural differences, language learning
""")
ARTS = _phrases("""
    jazz, classical music, opera, rock music, folk songs, the piano, the violin, the guitar, drums, ballet, theatre, cinema,
    photography, oil painting, watercolours, sculpture, pottery, architecture, impressionism, cubism, poetry, haiku, sonnets,
    novels, short stories, fairy tales, myths, comics, calligraphy, origami, knitting, graphic design, fashion, video games
""")
DAILY = _phrases("""
    making bread, cooking rice, brewing coffee, growing tomatoes, keeping houseplants alive, raising a puppy, training a cat,
    cleaning windows, doing laundry, packing a suitcase, riding a bicycle, changing a tyre, painting a room, fixing a leaking tap,
    saving money, planning a birthday party, writing a CV, preparing for an interview, learning to swim, running a marathon,
    yoga, meditation, healthy breakfasts, vegetarian cooking, making soup, baking cookies, camping, hiking, fishing, chess,
    gardening, composting, beekeeping, learning the guitar, reading more books, moving to a new city, working from home,
    managing time, sleeping better, drinking more water, choosing a laptop, buying a used car, first aid, road safety
""")
PLACES = _phrases("""
    France, Japan, Brazil, Egypt, Canada, India, Kenya, Norway, Italy, Mexico, Australia, China, Greece, Peru, Morocco, Iceland,
    Germany, Spain, Portugal, Turkey, Thailand, Vietnam, South Africa, Argentina, Chile, New Zealand, Ireland, Scotland, Poland,
    Sweden, Finland, Switzerland, Austria, the Netherlands, Belgium, Paris, London, Rome, Tokyo, New York, Berlin, Vienna, Istanbul,
    Cairo, Sydney, Lisbon, Prague, Amsterdam, Barcelona, Athens, Buenos Aires, Cape Town, Singapore, Seoul, Bangkok, Nairobi
""")
ANIMALS = _phrases("""
    elephants, tigers, wolves, dolphins, whales, sharks, penguins, owls, eagles, bees, ants, butterflies, spiders, octopuses,
    turtles, frogs, snakes, crocodiles, horses, dogs, cats, rabbits, bears, foxes, kangaroos, koalas, pandas, giraffes, zebras,
    gorillas, bats, hedgehogs, squirrels, salmon, jellyfish, parrots, ducks, flamingos, cheetahs, camels, otters, beavers
""")
JOBS = _phrases("""
    a nurse, a teacher, a carpenter, a software engineer, a chef, a pilot, a farmer, a lawyer, a journalist, an architect, a plumber,
    an electrician, a librarian, a scientist, a musician, a photographer, a shopkeeper, a bus driver, a dentist, a gardener,
    a data analyst, a project manager, a translator, a firefighter, a veterinarian, an accountant, a designer, a baker
""")
HEROES = _phrases("""
    a young girl named Mara, an old fisherman, a curious robot, a lost puppy, two brothers, a shy dragon, a clever fox,
    a lighthouse keeper, a time traveller, a baker who cannot sleep, a detective, a singing cat, an astronaut, a tired wizard,
    a boy who collects stones, a talking tree, a brave mouse, a painter, a postman, a lonely star, a queen who hates crowns,
    a clockmaker, a sailor, a girl and her kite, a scientist, a violin, a snowman, a gardener, a pirate, a librarian
""")
EVENTS = _phrases("""
    finds a hidden door, loses a map, learns to forgive, meets a stranger on a train, gets lost in a storm, discovers an old letter,
    saves a village, makes an unlikely friend, hears a strange song, wakes up in another time, plants a magic seed,
    returns home after ten years, builds a flying machine, must keep a secret, breaks a promise, wins an unusual race,
    finds a key that opens nothing, is afraid of the dark, opens a small shop, sees the sea for the first time
""")
SETTINGS = _phrases("""
    in a small village, on a distant planet, in a busy city, by the sea, in a deep forest, during a long winter, on an island,
    in an old library, on a train, in a castle, in the year 2150, at the market, in the mountains, under the sea, at school
""")
LANGUAGES = _phrases("French, Spanish, German, Italian, Portuguese, Dutch, Swedish, Latin")
FIRST_NAMES = _phrases("""
    Anna, Ben, Carla, David, Elena, Farid, Grace, Hugo, Ines, Jonas, Kira, Liam, Mina, Noah, Olga, Paulo, Quinn, Rosa, Sami, Tara,
    Umar, Vera, Will, Xenia, Yusuf, Zoe, Amara, Bruno, Chloe, Diego, Emil, Fatima, Henry, Isla, Jamal, Leila, Marco, Nadia, Oscar
""")
FAMILY_NAMES = _phrases("""
    Smith, Garcia, Müller, Rossi, Tanaka, Novak, Silva, Dubois, Khan, Jensen, Kim, Brown, Okafor, Ivanova, Lopez, Weber, Martin,
    Sato, Costa, Haddad, Nguyen, Walker, Berg, Popescu, Murphy, Ali, Moreau, Schmidt, Santos, Lindgren
""")
ITEMS = _phrases("""
    notebook, lamp, bicycle, umbrella, backpack, kettle, desk, chair, keyboard, headphones, blanket, watch, camera, teapot, scarf,
    hammer, ladder, mirror, suitcase, tent, guitar, puzzle, candle, vase, basket, pillow, jacket, gloves, thermos, radio
""")
COLOURS = _phrases(
    "red, blue, green, yellow, black, white, orange, purple, brown, grey, silver, pink"
)
TOWNS = _phrases(
    "Paris, Lyon, Berlin, Madrid, Rome, Vienna, Oslo, Dublin, Porto, Prague, Zurich, Ghent, Turin, Leeds, Bergen, Graz"
)

SUBJECTS = [*SCIENCE, *TECHNOLOGY, *HISTORY, *SOCIETY, *ARTS, *DAILY, *PLACES, *ANIMALS]
"""All topics that a request may ask to explain."""
