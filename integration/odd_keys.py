"""Values of composite keys that are hard to take apart."""

KEYGEN = "hoodie.datasource.write.keygenerator.class"
# Left out are those at which Hudi 1.2.0 never comes back: a second `:` behind a `,`.
ODD_VALUES = ["", None, "x", "y:z", "p,q", "p,q:r", "10:30:05", "é", "😀", "\U00010000a", "a:b,c", ",", ":", ",:", ":,"]
ODD_VALUES += ["__null__", "__empty__", "b:1", "x,b:1", "𝄞𝄞", "long" * 20, "\uffff"]


def key_text(a, b):
    a, b = ("__null__" if each is None else each or "__empty__" for each in (a, b))
    return f"a:{a},b:{b}"
