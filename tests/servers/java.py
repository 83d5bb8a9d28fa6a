"""Options of a JVM that lives for minutes, as those of the tests do."""

SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
"""It compiles its own code most of the time: its first compiler alone takes half of the CPU.

With that one alone there are 48 MB for compiled code, which Spark fills: then code is dropped, and compiled once more.
"""
