"""How much one file holds. What is beyond is thinned out, and the report says so."""

SHOWN = 12  # users on the map, unless told
MOST_SHOWN = 50  # users on the map, at most
STEPS = 1000  # steps of each that the map goes through
SILENCE = 3  # steps without a release that it goes through; of longer silence it shows none
# that say where users may be: domains, beliefs and repaired edges of all users together, some 6 MB
NUMBERS = 1_200_000
HEAT = 400  # locations of a belief that are drawn, the likeliest first
OUTLINE = 12_000  # strokes of the policy's outlines
PICTURE_CELLS = 40  # cells a side of the policy's picture
PICTURE_EDGES = 2_500  # edges that it can show
POINTS = 4_000  # locations off a grid that it can show
ENTRIES = 50_000_000  # traces times columns that are laid out
CHART = 160  # points of a line: more steps are averaged
