"""Questions about a scene and their answers; how they are put differs between training and test."""

from scenes import ACROSS, DOWN, NUMBERS

ASKED = {
    "what": (
        ["What is this?", "What is it?", "What do you see?", "What is in the picture?", "What is in this image?", "what's this", "What does the picture show?", "What is shown here?", "Name what you see.", "Which thing is in the image?", "Say what this is.", "What can be seen here?", "What do we have here?", "Identify the object.", "What is drawn in this picture?"],
        ["What's in this picture?", "What does this image show?", "Tell me what this is.", "What am I looking at?", "Can you tell what is in the image?"],
    ),
    "colour": (
        ["What colour is the {}?", "What color is the {}?", "Which colour does the {} have?", "Which color has the {}?", "Tell me the color of the {}.", "the {}: which colour?", "What is the colour of the {}?", "Name the colour of the {}.", "What color does the {} have?", "Say which colour the {} has.", "In which color is the {} drawn?"],
        ["What is the color of the {}?", "Of what colour is the {}?", "Can you say what color the {} is?", "Which colour is the {}?"],
    ),
    "count": (
        ["How many {} are there?", "How many {} do you see?", "How many {} are in the picture?", "Count the {}.", "What is the number of {}?", "how many {}", "Say how many {} are in the image.", "How many {} does the picture have?", "Give the number of {} in this image.", "How many {} can be seen?"],
        ["How many {} does this image show?", "Please count the {} here.", "Tell me how many {} there are.", "How many {} are shown?"],
    ),
    "where": (
        ["Where is the {}?", "Where in the picture is the {}?", "Where do you see the {}?", "In which place is the {}?", "Say where the {} is.", "where's the {}", "In which part of the image is the {}?", "Locate the {}.", "Which part of the picture has the {}?", "Where can the {} be seen?"],
        ["Where in the image is the {}?", "Tell me where the {} is.", "Whereabouts is the {}?", "In what part of the picture is the {}?"],
    ),
    "side": (
        ["What is {}?", "Which thing is {}?", "What do you see {}?", "What can be seen {}?", "Name the thing {}.", "Say what is {}.", "What is shown {}?", "Which object is {}?", "Tell me what is {}."],
        ["What's {}?", "Which object do you see {}?", "Can you tell what is {}?", "What thing is {}?"],
    ),
    "is": (
        ["Is there {} in the picture?", "Is there {}?", "Do you see {}?", "Does the picture show {}?", "Can you see {} here?", "Is {} in this image?", "Is {} shown?", "Does the image have {}?"],
        ["Is there {} in this image?", "Does this picture have {} in it?", "Do you see {} anywhere?"],
    ),
    "describe": (
        ["Describe the picture.", "Describe this image.", "What does the whole picture look like?", "Give a caption.", "Describe what you see.", "Write a short description of the image.", "Caption this picture."],
        ["Describe the image in a few words.", "Write a caption for this picture.", "Give a description of what you see."],
    ),
    "time": (
        ["What comes {}?", "What do you see {}?", "What is shown {}?", "Which thing comes {}?", "What appears {}?", "Say what is seen {}.", "what is {}"],
        ["What happens {}?", "Which object appears {}?", "What can be seen {}?"],
    ),
}
PLURAL = {"cherries", "grapes", "scissors", "glasses", "trousers"}
MASS = {"corn", "bread", "cheese", "fire", "ice cream"}
IRREGULAR = {"mouse": "mice", "fish": "fish", "leaf": "leaves", "strawberry": "strawberries", "cookie": "cookies", "butterfly": "butterflies"}


def some(thing, colour=None):
    words = f"{colour} {thing}" if colour else thing
    if thing in PLURAL or thing in MASS:
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def many(thing):
    if thing in PLURAL or thing in MASS:
        return thing
    if thing in IRREGULAR:
        return IRREGULAR[thing]
    return thing + ("es" if thing.endswith(("s", "x", "ss", "ch", "sh")) or thing == "octopus" else "s")


def is_clear(value):
    return not 0.17 < abs(value) < 0.33


def place(one):
    side = lambda value, names: names[0] if value < -0.25 else names[2] if value > 0.25 else names[1]
    across, down = side(one["x"], ACROSS), side(one["y"], DOWN)
    if across == "middle" and down == "middle":
        return "in the middle"
    if down == "middle":
        return f"on the {across}"
    return f"at the {down}" if across == "middle" else f"at the {down} {across}"


def sentence(text):
    return text[0].upper() + text[1:] + "."


def relations(first, second):
    """How the first lies to the second, and where it is in the picture, as phrases."""
    dx, dy = first["x"] - second["x"], first["y"] - second["y"]
    if abs(dx) > abs(dy) + 0.25:
        return ("to the left of", "on the left") if dx < 0 else ("to the right of", "on the right")
    if abs(dy) > abs(dx) + 0.25:
        return ("above", "at the top") if dy < 0 else ("below", "at the bottom")
    return None


def asked_of(scene, dice, things, held):
    """Pairs of kind, question and answer of one scene, in the templates of training or of the test."""
    put = lambda kind, *words: dice.choice(ASKED[kind][1 if held else 0]).format(*words)
    count, found = len(scene), []
    first, names = scene[0], [one["thing"] for one in scene]
    alone, same = count == 1, count > 1 and len(set(names)) == 1
    if alone:
        found.append(("what", put("what"), sentence(some(first["thing"]))))
        if is_clear(first["x"]) and is_clear(first["y"]):
            found.append(("where", put("where", first["thing"]), sentence(place(first))))
        found.append(("describe", put("describe"), sentence(some(first["thing"], first["colour"]))))
    elif same:
        found.append(("what", put("what"), sentence(many(first["thing"]))))
        found += [("count", put("count", many(first["thing"])), sentence(NUMBERS[count - 1]))] * 2
        coloured = f"{first['colour']} " if first["colour"] else ""
        found.append(("describe", put("describe"), sentence(f"{NUMBERS[count - 1]} {coloured}{many(first['thing'])}")))
    else:
        found.append(("count", put("count", dice.choice(["things", "objects"])), sentence(NUMBERS[count - 1])))
        if count == 2:
            said = relations(*scene)
            if said:
                other = relations(scene[1], first)
                for one, (beside, side), another in ((first, said, scene[1]), (scene[1], other, first)):
                    phrase = side if dice.random() < 0.6 else f"{beside} the {another['thing']}"
                    found.append(("side", put("side", phrase), sentence(some(one["thing"]))))
                    found.append(("where", put("where", one["thing"]), sentence(side)))
                found.append(("describe", put("describe"), sentence(f"{some(first['thing'])} {said[1]} and {some(scene[1]['thing'])} {other[1]}")))
    for one in [first] if same else scene:
        if one["colour"]:
            found.append(("colour", put("colour", many(one["thing"]) if same else one["thing"]).replace("colour is", "colour are" if same else "colour is").replace("color is", "color are" if same else "color is"), sentence(one["colour"])))
    is_there = dice.random() < 0.5
    thing = dice.choice(names) if is_there else dice.choice([t for t in things if t not in names])
    found.append(("is", put("is", some(thing)), "Yes." if is_there else "No."))
    return found


def asked_of_clip(order, dice, held):
    """The same of things that are seen one after the other."""
    put = lambda words: dice.choice(ASKED["time"][1 if held else 0]).format(words)
    found = [("time", put("first"), sentence(some(order[0]))), ("time", put(dice.choice(["last", "at the end"])), sentence(some(order[-1])))]
    if len(order) > 1:
        at = dice.randrange(1, len(order))
        found.append(("time", put(f"after the {order[at - 1]}"), sentence(some(order[at]))))
        found.append(("time", put(f"before the {order[at]}"), sentence(some(order[at - 1]))))
    return found
