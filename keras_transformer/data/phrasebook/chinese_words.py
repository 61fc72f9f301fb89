"""Chinese words with their English, by what they can be combined with."""

from __future__ import annotations

from keras_transformer.data.phrasebook.english import MONTHS as ENGLISH_MONTHS
from keras_transformer.data.phrasebook.english import NUMBERS, Subject
from keras_transformer.data.phrasebook.grammar import words

PRONOUNS = [
    *(Subject(source, english, True) for source, english in words("他=he, 她=she").items()),
    *(Subject(source, english, False) for source, english in words("我=I, 你=you, 我们=we, 他们=they").items()),
]
SUBJECTS = [
    *PRONOUNS,
    Subject("你们", "you", False),
    Subject("我的朋友们", "my friends", False),
    Subject("学生们", "the students", False),
    *(
        Subject(source, english, True)
        for source, english in words(
            """爸爸=Dad, 妈妈=Mum, 老师=the teacher, 我弟弟=my younger brother, 我哥哥=my older brother,
            我妹妹=my younger sister, 我姐姐=my older sister, 我朋友=my friend, 我同学=my classmate, 小明=Xiaoming,
            小红=Xiaohong, 王先生=Mr Wang, 李小姐=Miss Li, 玛丽=Mary, 大卫=David, 安娜=Anna, 简=Jane"""
        ).items()
    ),
]
# People as objects: "for me", "than him".
OBJECTS = words(
    """我=me, 你=you, 他=him, 她=her, 我们=us, 他们=them, 爸爸=Dad, 妈妈=Mum, 老师=the teacher, 小明=Xiaoming,
    小红=Xiaohong, 王先生=Mr Wang, 李小姐=Miss Li, 玛丽=Mary, 大卫=David"""
)
OWNERS = words(
    """我的=my, 你的=your, 他的=his, 她的=her, 我们的=our, 他们的=their, 小明的=Xiaoming's, 爸爸的=Dad's,
    妈妈的=Mum's, 老师的=the teacher's, 王先生的=Mr Wang's, 李小姐的=Miss Li's, 玛丽的=Mary's, 大卫的=David's"""
)

DRINKS = words(
    """水=water, 热水=hot water, 茶=tea, 绿茶=green tea, 咖啡=coffee, 牛奶=milk, 果汁=juice, 啤酒=beer,
    红酒=red wine, 可乐=cola, 汽水=soda, 汤=soup"""
)
FOOD = words(
    """水果=fruit, 苹果=apples, 香蕉=bananas, 葡萄=grapes, 西瓜=watermelon, 米饭=rice, 面条=noodles, 面包=bread,
    饺子=dumplings, 鱼=fish, 牛肉=beef, 鸡肉=chicken, 鸡蛋=eggs, 蔬菜=vegetables, 蛋糕=cake, 巧克力=chocolate"""
)
SPORTS = words("足球=football, 篮球=basketball, 网球=tennis, 乒乓球=table tennis, 羽毛球=badminton, 排球=volleyball")
STUDIES = words(
    """中文=Chinese, 英语=English, 法语=French, 数学=maths, 历史=history, 音乐=music, 物理=physics, 化学=chemistry,
    艺术=art, 文学=literature"""
)
LANGUAGES = words("中文=Chinese, 英语=English, 法语=French, 日语=Japanese, 德语=German, 西班牙语=Spanish")
COURSES = words(
    """水课=easy courses, 数学课=maths courses, 历史课=history courses, 音乐课=music courses,
    中文课=Chinese courses, 英语课=English courses, 网课=online courses, 新课=new courses"""
)
LIKED = words(
    """狗=dogs, 猫=cats, 马=horses, 熊猫=pandas, 鸟=birds, 老虎=tigers, 春天=spring, 夏天=summer, 秋天=autumn,
    冬天=winter, 北京=Beijing, 上海=Shanghai, 中国=China, 法国=France, 非洲=Africa, 巴黎=Paris, 老电影=old films,
    小说=novels, 花=flowers, 山水画=landscape paintings, 香水=perfume, 水彩画=watercolours, 雨天=rainy days,
    大海=the sea, 京剧=Beijing opera, 这个城市=this city, 这所学校=this school, 有意思的书=interesting books,
    有意思的课=interesting courses, 有意思的人=interesting people"""
)

GAMES = {f"{'踢' if ball == '足球' else '打'}{ball}": f"play {english}" for ball, english in SPORTS.items()}
LEISURE = {
    **GAMES,
    **words(
        """打球=play ball, 打牌=play cards, 打游戏=play video games, 打太极拳=practise tai chi, 看电影=watch films,
        看电视=watch television, 看足球比赛=watch football matches, 听音乐=listen to music, 唱歌=sing, 跳舞=dance,
        游泳=swim, 跑步=run, 散步=go for a walk, 画画=paint, 拍照=take photos, 下棋=play chess,
        弹钢琴=play the piano, 爬山=climb mountains, 弹吉他=play the guitar, 骑自行车=ride a bicycle,
        看书=read books, 聊天=chat, 喝水=drink water, 喝茶=drink tea, 喝咖啡=drink coffee, 喝啤酒=drink beer,
        吃水果=eat fruit, 吃面条=eat noodles, 吃饺子=eat dumplings, 吃蛋糕=eat cake"""
    ),
}
TASKS = words(
    """打电话=make a phone call, 打车=take a taxi, 打工=work part-time, 打字=type, 打扫房间=clean the room,
    打开窗户=open the window, 打开门=open the door, 打开电脑=turn on the computer, 打开电视=turn on the television,
    看医生=see a doctor, 看报纸=read newspapers, 上课=attend class, 上网=go online, 上班=go to work,
    上水课=take easy courses, 上数学课=take maths courses, 上网课=take online courses, 选水课=choose easy courses,
    选历史课=choose history courses, 学中文=study Chinese, 学英语=study English, 学法语=study French,
    学数学=study maths, 写信=write letters, 写小说=write novels, 做饭=cook, 做作业=do homework, 洗衣服=wash clothes,
    洗碗=wash the dishes, 买菜=buy groceries, 买水果=buy fruit, 买衣服=buy clothes, 买香水=buy perfume,
    坐地铁=take the underground, 坐公共汽车=take the bus, 坐火车=take the train, 睡觉=sleep, 回家=go home, 休息=rest"""
)
ACTIONS = LEISURE | TASKS
SKILLS = {
    **GAMES,
    **{f"说{language}": f"speak {english}" for language, english in LANGUAGES.items()},
    **words(
        """游泳=swim, 开车=drive, 做饭=cook, 唱歌=sing, 跳舞=dance, 弹钢琴=play the piano, 弹吉他=play the guitar,
        下棋=play chess, 骑自行车=ride a bicycle, 骑马=ride a horse, 打字=type, 滑冰=ice skate, 滑雪=ski,
        画画=paint, 打太极拳=practise tai chi"""
    ),
}
# Where something can be done, and what.
PLACES = {
    ("在家", "at home"): words(
        """看电视=watch television, 看书=read books, 做饭=cook, 听音乐=listen to music, 打电话=make phone calls,
        喝茶=drink tea, 吃水果=eat fruit, 打游戏=play video games, 休息=rest, 做作业=do homework,
        上网课=take online courses"""
    ),
    ("在公园里", "in the park"): words(
        """散步=go for a walk, 跑步=run, 打球=play ball, 打太极拳=practise tai chi, 拍照=take photos, 画画=paint,
        喝水=drink water, 踢足球=play football, 下棋=play chess"""
    ),
    ("在学校", "at school"): words(
        """学英语=study English, 学法语=study French, 打篮球=play basketball, 打排球=play volleyball, 唱歌=sing,
        跳舞=dance"""
    ),
    ("在图书馆", "in the library"): words("看书=read books, 做作业=do homework, 上网=go online, 写信=write letters"),
    ("在办公室", "in the office"): words(
        "打电话=make phone calls, 打字=type, 喝咖啡=drink coffee, 看报纸=read newspapers"
    ),
    ("在咖啡馆", "in the café"): words("喝咖啡=drink coffee, 聊天=chat, 吃蛋糕=eat cake, 打工=work part-time"),
}
CLOCK = {
    "早上": (
        "in the morning",
        "六七八",
        words(
            """起床=get up, 吃早饭=have breakfast, 上班=go to work, 上学=go to school, 跑步=run,
            打太极拳=practise tai chi"""
        ),
    ),
    "晚上": (
        "in the evening",
        "六七八九",
        words("吃晚饭=have dinner, 回家=go home, 看电视=watch television, 做作业=do homework, 打球=play ball"),
    ),
}

TOWNS = words(
    """北京=Beijing, 上海=Shanghai, 广州=Guangzhou, 杭州=Hangzhou, 香港=Hong Kong, 巴黎=Paris, 伦敦=London,
    纽约=New York, 东京=Tokyo, 罗马=Rome"""
)
LANDS = words(
    """中国=China, 法国=France, 英国=Britain, 美国=the United States, 德国=Germany, 日本=Japan, 意大利=Italy,
    西班牙=Spain, 加拿大=Canada, 澳大利亚=Australia, 非洲=Africa, 欧洲=Europe, 印度=India, 埃及=Egypt, 墨西哥=Mexico"""
)
NUMERALS = dict(zip([*"一二三四五六七八九十", "十一", "十二"], NUMBERS, strict=True))
COUNTS = dict(zip("一两三四五六七八九十", range(1, 11), strict=True))
TENS = words(
    """二十=twenty, 三十=thirty, 四十=forty, 五十=fifty, 六十=sixty, 七十=seventy, 八十=eighty, 九十=ninety,
    一百=a hundred"""
)
MONTHS = {f"{numeral}月": month for numeral, month in zip(NUMERALS, ENGLISH_MONTHS, strict=True)}
WEEKDAYS = words(
    """星期一=Monday, 星期二=Tuesday, 星期三=Wednesday, 星期四=Thursday, 星期五=Friday, 星期六=Saturday,
    星期天=Sunday"""
)
SEASONS = {
    "春天": ("spring", words("暖和=warm, 凉快=cool")),
    "夏天": ("summer", words("热=hot, 凉快=cool, 暖和=warm")),
    "秋天": ("autumn", words("凉快=cool, 暖和=warm, 冷=cold")),
    "冬天": ("winter", words("冷=cold, 暖和=warm")),
}
WEATHER = words("冷=cold, 热=hot, 暖和=warm, 凉快=cool")
NO_SNOW = ["广州", "香港", "澳大利亚", "非洲", "印度", "埃及", "墨西哥"]

ADJECTIVES = words(
    """有意思=interesting, 没意思=boring, 贵=expensive, 便宜=cheap, 大=big, 小=small, 新=new, 旧=old, 长=long,
    漂亮=beautiful, 好吃=tasty, 好喝=tasty, 难=difficult, 简单=simple, 重要=important, 有名=famous, 可爱=cute,
    聪明=clever, 甜=sweet, 热=hot, 干净=clean"""
)
# Things begin with their measure word.
BOOKS = words("本书=book, 本小说=novel, 本杂志=magazine")
CLOTHES = words("件毛衣=sweater, 件衬衫=shirt, 件大衣=coat, 条裙子=skirt, 顶帽子=hat, 双鞋=pair of shoes")
GOODS = words(
    """张桌子=table, 张床=bed, 把椅子=chair, 把雨伞=umbrella, 辆车=car, 辆自行车=bicycle, 台电脑=computer,
    部手机=phone, 个包=bag"""
)
SNACKS = words(
    """个苹果=apple, 个橙子=orange, 个西瓜=watermelon, 个蛋糕=cake, 个鸡蛋=egg, 碗米饭=bowl of rice,
    碗面条=bowl of noodles"""
)
CUPS = words(
    """杯茶=cup of tea, 杯绿茶=cup of green tea, 杯咖啡=cup of coffee, 杯水=glass of water, 杯牛奶=glass of milk,
    杯果汁=glass of juice, 瓶啤酒=bottle of beer, 瓶汽水=bottle of soda, 碗汤=bowl of soup"""
)
BOTTLES = words("瓶香水=bottle of perfume, 瓶红酒=bottle of red wine")
PICTURES = words("幅画=painting, 幅山水画=landscape painting, 幅水彩画=watercolour")
ANIMALS = words("只猫=cat, 只狗=dog, 只鸟=bird, 匹马=horse")
CLASSES = words(
    """门水课=easy course, 门数学课=maths course, 门历史课=history course, 门音乐课=music course,
    门中文课=Chinese course, 门英语课=English course, 门新课=new course"""
)
# What can be said of which things.
DESCRIBED = (
    ("有意思 没意思 贵 便宜 新 旧 有名", BOOKS),
    ("有意思 没意思 长 有名", words("个故事=story, 部电影=film")),
    (
        "有意思 没意思 难 简单 重要",
        words("门课=course, 门数学课=maths course, 门历史课=history course, 门语言=language"),
    ),
    ("漂亮 贵 便宜 新 旧 大 小", CLOTHES),
    ("贵 便宜 新 旧 大 小", GOODS),
    ("好吃 甜 贵 大 小", words("个苹果=apple, 个橙子=orange, 个西瓜=watermelon, 个蛋糕=cake")),
    ("好喝 热 贵", words("杯茶=cup of tea, 杯咖啡=cup of coffee, 碗汤=bowl of soup")),
    ("贵 便宜 小", BOTTLES),
    ("漂亮 贵 有名", PICTURES),
    ("可爱 聪明 大 小", ANIMALS),
    ("漂亮 大 小 有名 干净", words("个城市=city, 个公园=park, 所大学=university")),
    ("难 简单 重要 有意思", words("个问题=question")),
)
STATES = words("累=tired, 忙=busy, 饿=hungry, 渴=thirsty, 紧张=nervous, 难过=sad, 生气=angry")
TRAITS = words("高=tall, 聪明=clever, 年轻=young, 有名=famous, 认真=serious, 有意思=interesting")
JOBS = words(
    """医生=doctor, 老师=teacher, 学生=student, 工程师=engineer, 律师=lawyer, 护士=nurse, 司机=driver,
    警察=police officer, 作家=writer, 演员=actor, 歌手=singer, 水手=sailor, 厨师=cook"""
)
BELONGINGS = words(
    """手机=phone, 书=book, 雨伞=umbrella, 护照=passport, 钱包=wallet, 帽子=hat, 词典=dictionary, 照相机=camera,
    香水=perfume, 水果=fruit, 水彩画=watercolour"""
)
SPOTS = words(
    "在桌子上=on the table, 在床下面=under the bed, 在包里=in the bag, 在房间里=in the room, 在车里=in the car"
)
BUILDINGS = words(
    """火车站=the railway station, 医院=the hospital, 图书馆=the library, 邮局=the post office, 银行=the bank,
    博物馆=the museum, 水果店=the fruit shop, 洗手间=the toilet, 公园=the park"""
)
# What has a meaning.
SAYINGS = words(
    """这个词=this word, 那个词=that word, 这句话=this sentence, 那句话=that sentence, 这个字=this character,
    这首诗=this poem, 这个句子=this phrase"""
)
TOPICS = words(
    """历史=history, 数学=maths, 中文=Chinese, 京剧=Beijing opera, 艺术=art, 文学=literature, 足球=football,
    篮球=basketball, 这本书=this book, 这部电影=this film, 这门课=this course, 这个故事=this story,
    那场比赛=that match"""
)
