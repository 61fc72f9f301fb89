"""French words with their English, by what they can be combined with."""

from __future__ import annotations

import re
from typing import NamedTuple

from keras_transformer.data.phrasebook.english import MONTHS as ENGLISH_MONTHS
from keras_transformer.data.phrasebook.english import NUMBERS as ENGLISH_NUMBERS
from keras_transformer.data.phrasebook.french_grammar import FrenchSubject
from keras_transformer.data.phrasebook.grammar import words

PRONOUNS = [
    FrenchSubject("je", "I", False, 0),
    FrenchSubject("tu", "you", False, 1),
    FrenchSubject("il", "he", True, 2),
    FrenchSubject("elle", "she", True, 2, True),
    FrenchSubject("nous", "we", False, 3),
    FrenchSubject("vous", "you", False, 4),
    FrenchSubject("ils", "they", False, 5),
    FrenchSubject("elles", "they", False, 5, True),
]
MEN = words(
    """Paul=Paul, Pierre=Pierre, mon père=my father, mon frère=my brother, mon ami=my friend,
    le professeur=the teacher, le voisin=the neighbour"""
)
WOMEN = words("Jane=Jane, Marie=Marie, Sophie=Sophie, ma mère=my mother, ma sœur=my sister")
PEOPLE = words("mes parents=my parents, mes amis=my friends, mes cousins=my cousins, nos voisins=our neighbours")
SUBJECTS = [
    *PRONOUNS,
    *(FrenchSubject(source, english, True, 2) for source, english in MEN.items()),
    *(FrenchSubject(source, english, True, 2, True) for source, english in WOMEN.items()),
    *(FrenchSubject(source, english, False, 5) for source, english in PEOPLE.items()),
]
OBJECTS = MEN | WOMEN | PEOPLE
THAN = words("moi=me, toi=you, lui=him, elle=her, eux=them") | OBJECTS

LIKED = words(
    """le thé=tea, le café=coffee, le lait=milk, le vin=wine, le pain=bread, le fromage=cheese, le poisson=fish,
    la viande=meat, la soupe=soup, les pommes=apples, les légumes=vegetables, les oranges=oranges,
    le chocolat=chocolate, les chiens=dogs, les chats=cats, les chevaux=horses, les oiseaux=birds,
    le football=football, le tennis=tennis, la musique=music, l'histoire=history, les mathématiques=maths,
    l'art=art, le théâtre=the theatre, le cinéma=the cinema, les livres=books, les romans=novels,
    les fleurs=flowers, la mer=the sea, la montagne=the mountains, la nature=nature, la neige=snow, la pluie=rain,
    l'été=summer, l'hiver=winter, l'automne=autumn, le printemps=spring, Paris=Paris, Rome=Rome,
    les voyages=travelling, les cours faciles=easy courses, les films drôles=funny films,
    les vieilles maisons=old houses, le français=French, l'anglais=English"""
)
# What somebody can be in the middle of.
ACTIONS = words(
    """boire du thé=drink tea, boire du café=drink coffee, boire de l'eau=drink water, boire du lait=drink milk,
    boire du vin=drink wine, boire de la bière=drink beer, manger du pain=eat bread, manger des pommes=eat apples,
    manger de la viande=eat meat, manger du poisson=eat fish, manger des légumes=eat vegetables,
    manger de la soupe=eat soup, manger du fromage=eat cheese, manger du chocolat=eat chocolate,
    jouer au football=play football, jouer au tennis=play tennis, jouer au basket=play basketball,
    jouer aux échecs=play chess, jouer aux cartes=play cards, jouer du piano=play the piano,
    jouer de la guitare=play the guitar, jouer du violon=play the violin, faire du sport=do sport,
    faire du vélo=ride a bicycle, faire la cuisine=cook, faire la vaisselle=wash the dishes,
    faire les courses=do the shopping, faire une promenade=go for a walk, faire un gâteau=bake a cake,
    prendre le train=take the train, prendre le bus=take the bus, prendre un taxi=take a taxi,
    prendre une douche=have a shower, prendre le petit déjeuner=have breakfast, prendre des photos=take photos,
    lire un livre=read a book, lire le journal=read the newspaper, lire des romans=read novels,
    écrire une lettre=write a letter, écouter la radio=listen to the radio, écouter de la musique=listen to music,
    regarder la télévision=watch television, regarder un film=watch a film, étudier le français=study French,
    étudier l'histoire=study history, apprendre le chinois=learn Chinese, apprendre l'anglais=learn English,
    parler français=speak French, parler anglais=speak English, travailler=work, chanter=sing, danser=dance,
    nager=swim, courir=run, dormir=sleep, dessiner=draw, acheter des fleurs=buy flowers, acheter du pain=buy bread,
    acheter un cadeau=buy a present, vendre des livres=sell books, attendre le bus=wait for the bus,
    choisir un film=choose a film, finir le travail=finish the work, visiter le musée=visit the museum,
    ouvrir la fenêtre=open the window, fermer la porte=close the door, chercher un appartement=look for a flat,
    nettoyer la cuisine=clean the kitchen"""
)
MOVES = words(
    """rester à la maison=stay at home, aller au cinéma=go to the cinema, aller à l'école=go to school,
    aller à la plage=go to the beach, aller au marché=go to the market, rentrer tôt=come home early, sortir=go out,
    partir tôt=leave early, venir en train=come by train"""
)
SKILLS = words(
    """nager=swim, danser=dance, chanter=sing, dessiner=draw, lire=read, écrire=write, conduire=drive,
    faire du vélo=ride a bicycle, faire la cuisine=cook, jouer aux échecs=play chess, jouer au tennis=play tennis,
    jouer du piano=play the piano, jouer de la guitare=play the guitar, parler chinois=speak Chinese,
    parler français=speak French"""
)


class Place(NamedTuple):
    """A place as it is visited, as where one is or goes to, and as where one comes from: l'Afrique, en, d'Afrique."""

    visited: str
    at: str
    origin: str
    english: str

    @classmethod
    def named(cls, name: str, english: str) -> Place:
        """The place of a name with its article; towns have none. Feminine lands and those with a vowel take "en"."""
        if match := re.match(r"(?:la |l')(.+)", name):
            return cls(name, f"en {match[1]}", f"de {match[1]}", english)
        return cls(name, f"à {name}", f"de {name}", english)


PLACES = [
    Place.named(name, english)
    for name, english in words(
        """la France=France, l'Afrique=Africa, l'Italie=Italy, l'Espagne=Spain, la Chine=China, l'Allemagne=Germany,
        la Suisse=Switzerland, la Belgique=Belgium, l'Angleterre=England, l'Inde=India, la Grèce=Greece,
        l'Australie=Australia, l'Europe=Europe, l'Asie=Asia, la Tunisie=Tunisia, le Japon=Japan, le Canada=Canada,
        le Maroc=Morocco, le Mexique=Mexico, le Brésil=Brazil, le Portugal=Portugal, le Sénégal=Senegal,
        les États-Unis=the United States, les Pays-Bas=the Netherlands, Paris=Paris, Londres=London, Rome=Rome,
        Genève=Geneva, Lyon=Lyon, Bruxelles=Brussels, Montréal=Montreal, Tokyo=Tokyo, Berlin=Berlin"""
    ).items()
]
_MONTHS = [
    *("janvier", "février", "mars", "avril", "mai", "juin"),
    *("juillet", "août", "septembre", "octobre", "novembre", "décembre"),
]
MONTHS = dict(zip(_MONTHS, ENGLISH_MONTHS, strict=True))
WHEN = {f"en {month}": f"in {english}" for month, english in MONTHS.items()} | words(
    "au printemps=in spring, en été=in summer, en automne=in autumn, en hiver=in winter"
)
WEEKDAYS = words(
    """lundi=Monday, mardi=Tuesday, mercredi=Wednesday, jeudi=Thursday, vendredi=Friday, samedi=Saturday,
    dimanche=Sunday"""
)
NUMBERS = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze"]
HOURS = dict(zip(["une", *NUMBERS[1:]], ENGLISH_NUMBERS[:11], strict=True))
TENS = words("dix=ten, vingt=twenty, trente=thirty, quarante=forty, cinquante=fifty, soixante=sixty, cent=a hundred")

# Masculine/feminine.
STATES = words(
    """content/contente=happy, fatigué/fatiguée=tired, triste/triste=sad, malade/malade=ill, occupé/occupée=busy,
    inquiet/inquiète=worried"""
)
TRAITS = words(
    """grand/grande=tall, jeune/jeune=young, gentil/gentille=kind, intelligent/intelligente=clever,
    célèbre/célèbre=famous, riche/riche=rich, sérieux/sérieuse=serious, fort/forte=strong"""
)
JOBS = words(
    """médecin/médecin=doctor, professeur/professeure=teacher, étudiant/étudiante=student,
    infirmier/infirmière=nurse, acteur/actrice=actor, ingénieur/ingénieure=engineer, avocat/avocate=lawyer,
    boulanger/boulangère=baker, chanteur/chanteuse=singer, cuisinier/cuisinière=cook, écrivain/écrivaine=writer,
    journaliste/journaliste=journalist"""
)
# What one has in French and is in English.
HAD = words("faim=hungry, soif=thirsty, froid=cold, chaud=hot, peur=afraid, sommeil=sleepy, raison=right, tort=wrong")
FAMILY = words(
    """un frère=a brother, une sœur=a sister, des amis=friends, un ordinateur=a computer, un appartement=a flat,
    un jardin=a garden, une idée=an idea, un problème=a problem, une question=a question, de l'argent=money,
    du temps=time"""
)
THINGS = words(
    """une voiture=car, un vélo=bicycle, une maison=house, un chien=dog, un chat=cat, une robe=dress,
    un chapeau=hat, un sac=bag, une chemise=shirt, un manteau=coat, une chaise=chair, un bateau=boat,
    une valise=suitcase, un parapluie=umbrella, une écharpe=scarf"""
)
COLOURS = words(
    "rouge/rouge=red, bleu/bleue=blue, vert/verte=green, noir/noire=black, blanc/blanche=white, jaune/jaune=yellow"
)
SIZES = words("petit/petite=small, grand/grande=big, joli/jolie=pretty")
SMALL_THINGS = words("un livre=book, un stylo=pen, un verre=glass, une pomme=apple, une clé=key, une lettre=letter")
SPOTS = words(
    """sur la table=on the table, sous le lit=under the bed, dans la cuisine=in the kitchen,
    dans le jardin=in the garden, devant la porte=in front of the door, derrière la maison=behind the house"""
)
BUILDINGS = words(
    """la gare=the station, le musée=the museum, l'hôpital=the hospital, la banque=the bank, l'école=the school,
    le marché=the market, la bibliothèque=the library, le restaurant=the restaurant, l'hôtel=the hotel,
    la poste=the post office"""
)
NEAR = words("près de=near, à côté de=next to, en face de=opposite, loin de=far from, derrière=behind")
WEATHER = words("froid=cold, chaud=hot, frais=cool")
