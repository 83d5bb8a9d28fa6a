/* A file index of Spark that skips files in which no row can match a filter.
 *
 * Spark compiles this as it compiles its queries, once a session; so it is the body of a class, in the Java that Janino knows.
 * Scala 2.12 has another Seq. What is known of the files comes as text and is read when a filter first asks for a column: at
 * the end of this file.
 *
 * Verdicts are sets: a condition may be true, may be false and may be null for some row of the file. What is not understood may
 * be all three. Values are Spark's own, and its own orderings compare them: by them NaN is the greatest and -0.0 is 0.0.
 */
import java.util.*;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.*;
import scala.collection.immutable.Seq;

/* The relation over the files of these names; null where it has not exactly them. */
public Object generate(Object[] given) {
  SparkSession session = (SparkSession) given[0];
  String[] names = ((String) given[1]).split("\0", -1);
  StructType columns = (StructType) DataType.fromJson((String) given[3]);
  scala.collection.immutable.Map options = (scala.collection.immutable.Map) given[4];
  ArrayList paths = new ArrayList();
  for (int i = 0; i < names.length; i++) paths.add(new Path(names[i]));
  StructType parted = ((StructType) DataType.fromJson((String) given[5])).asNullable();
  scala.Option spec = parted.size() == 0 ? scala.Option.empty() : scala.Option.apply(
    new PartitionSpec(parted, folders((String) given[6], (String) given[7], (String) given[8])));
  String marks = (String) given[9];
  BoundedFileIndex index = new BoundedFileIndex(
    session, PythonUtils.toSeq(paths), options, spec, parted, paths, (String) given[2], marks.isEmpty() ? null : marks.split("\0", -1));
  if (index.count() != names.length) return null;
  StructType known = marks.isEmpty() ? parted : parted.add((String) given[10], DataTypes.IntegerType, true);
  return new HadoopFsRelation(
    index, known, columns.asNullable(), scala.Option.empty(), new ParquetFileFormat(), options, session);
}

/* Folders with the values of the partition columns in all rows of their files. */
private static Seq folders(String names, String texts, String kinds) {
  String[] folders = names.split("\0", -1);
  String[] each = texts.split("\0", -1);
  int width = kinds.length();
  ArrayList found = new ArrayList();
  for (int i = 0; i < folders.length; i++) {
    Object[] row = new Object[width];
    for (int j = 0; j < width; j++) row[j] = value(kinds.charAt(j), each[i * width + j]);
    found.add(new PartitionPath(new GenericInternalRow(row), new Path(folders[i])));
  }
  return PythonUtils.toSeq(found);
}

private static Object value(char kind, String text) {
  if (text.charAt(0) == '-') return null;
  String rest = text.substring(1);
  if (kind == 's') return org.apache.spark.unsafe.types.UTF8String.fromString(rest);
  if (kind == 'i') return Integer.valueOf(rest);
  if (kind == 'l') return Long.valueOf(rest);
  return Boolean.valueOf(rest);
}

public static class BoundedFileIndex extends InMemoryFileIndex {
  private final HashMap places = new HashMap();
  private final Known known;
  private final ArrayList files;
  private final StructType parted;
  private final String[] marks;

  public BoundedFileIndex(
      SparkSession session, Seq paths, scala.collection.immutable.Map options, scala.Option spec, StructType parted,
      ArrayList files, String text, String[] marks) {
    super(
      session, paths, options, scala.Option.empty(), NoopCache$.MODULE$, spec, scala.Option.empty());
    this.files = files;
    this.parted = parted;
    this.marks = marks;
    for (int i = 0; i < files.size(); i++) places.put(((Path) files.get(i)).toUri().getPath(), Integer.valueOf(i));
    known = new Known(text, files);
  }

  /* How many of the files there are; -1 where there is another one. */
  int count() {
    scala.collection.Iterator folders = super.listFiles(PythonUtils.toSeq(new ArrayList()), PythonUtils.toSeq(new ArrayList())).iterator();
    int found = 0;
    while (folders.hasNext()) {
      scala.collection.Iterator each = ((PartitionDirectory) folders.next()).files().iterator();
      for (; each.hasNext(); found++) if (place((FileStatusWithMetadata) each.next()) == null) return -1;
    }
    return found;
  }

  private Integer place(FileStatusWithMetadata file) {
    return (Integer) places.get(file.getPath().toUri().getPath());
  }

  /* Spark takes what two queries do alike from one of them. With other marks the same files have other rows. */
  public boolean equals(Object other) {
    if (!(other instanceof BoundedFileIndex)) return false;
    BoundedFileIndex that = (BoundedFileIndex) other;
    return super.equals(other) && files.equals(that.files) && Arrays.equals(marks, that.marks);
  }

  public int hashCode() {
    return files.hashCode();
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    Seq found = chosen(super.listFiles(partitionFilters, dataFilters), dataFilters);
    return marks == null ? found : marked(found);
  }

  /* Each file as a folder of its own, with its mark behind the values of its folder. */
  private Seq marked(Seq everything) {
    ArrayList found = new ArrayList();
    scala.collection.Iterator folders = everything.iterator();
    while (folders.hasNext()) {
      PartitionDirectory folder = (PartitionDirectory) folders.next();
      scala.collection.Iterator files = folder.files().iterator();
      while (files.hasNext()) {
        FileStatusWithMetadata file = (FileStatusWithMetadata) files.next();
        Object[] row = new Object[parted.size() + 1];
        for (int i = 0; i < parted.size(); i++) row[i] = folder.values().get(i, parted.apply(i).dataType());
        String mark = marks[place(file).intValue()];
        row[parted.size()] = mark.isEmpty() ? null : Integer.valueOf(mark);
        ArrayList one = new ArrayList();
        one.add(file);
        found.add(new PartitionDirectory(new GenericInternalRow(row), PythonUtils.toSeq(one)));
      }
    }
    return PythonUtils.toSeq(found);
  }

  private Seq chosen(Seq everything, Seq dataFilters) {
    if (dataFilters.isEmpty()) return everything;
    try {
      return pruned(everything, new Judge(known, dataFilters));
    } catch (Exception unforeseen) {
      return everything;
    } catch (LinkageError otherSpark) {
      return everything;
    } catch (StackOverflowError deep) {
      return everything;
    }
  }

  private Seq pruned(Seq everything, Judge judge) throws Exception {
    ArrayList found = new ArrayList();
    scala.collection.Iterator folders = everything.iterator();
    while (folders.hasNext()) {
      PartitionDirectory folder = (PartitionDirectory) folders.next();
      ArrayList kept = new ArrayList();
      scala.collection.Iterator files = folder.files().iterator();
      while (files.hasNext()) {
        FileStatusWithMetadata file = (FileStatusWithMetadata) files.next();
        if (judge.mayMatch(place(file).intValue())) kept.add(file);
      }
      found.add(new PartitionDirectory(folder.values(), PythonUtils.toSeq(kept)));
    }
    return PythonUtils.toSeq(found);
  }
}

/* The verdicts on the filters of one query. */
static class Judge {
  private static final int TRUE = 1, FALSE = 2, NULL = 4, ANY = 7;
  private static final int LESS = 0, MOST = 1, EQUAL = 2;

  private final Known known;
  private final ArrayList filters = new ArrayList();
  private final IdentityHashMap columns = new IdentityHashMap();
  private final IdentityHashMap lists = new IdentityHashMap();

  Judge(Known known, Seq filters) {
    this.known = known;
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) this.filters.add(each.next());
  }

  boolean mayMatch(int file) throws Exception {
    for (int i = 0; i < filters.size(); i++)
      if ((verdict((Expression) filters.get(i), file) & TRUE) == 0) return false;
    return true;
  }

  private int verdict(Expression of, int file) throws Exception {
    if (of instanceof And) return both(verdict(child(of, 0), file), verdict(child(of, 1), file));
    if (of instanceof Or)
      return negated(both(negated(verdict(child(of, 0), file)), negated(verdict(child(of, 1), file))));
    if (of instanceof Not) return negated(verdict(child(of, 0), file));
    if (of instanceof IsNull) return nulls(child(of, 0), file);
    if (of instanceof IsNotNull) return negated(nulls(child(of, 0), file));
    if (of instanceof Literal) return outcome(((Literal) of).value());
    if (of instanceof AttributeReference) return truth((AttributeReference) of, file);
    if (of instanceof BinaryComparison) return compared((BinaryComparison) of, file);
    if (of instanceof In || of instanceof InSet) return among(of, file);
    if (of instanceof StartsWith) return begins((StartsWith) of, file);
    return ANY;
  }

  private static Expression child(Expression of, int number) {
    return (Expression) of.children().apply(number);
  }

  private static int both(int one, int other) {
    int nothing = ((one & NULL) != 0 && (other & (NULL | TRUE)) != 0) || ((other & NULL) != 0 && (one & TRUE) != 0) ? NULL : 0;
    return (one & other & TRUE) | ((one | other) & FALSE) | nothing;
  }

  private static int negated(int found) {
    return (found & NULL) | ((found & TRUE) != 0 ? FALSE : 0) | ((found & FALSE) != 0 ? TRUE : 0);
  }

  private static int outcome(Object value) {
    return value == null ? NULL : Boolean.TRUE.equals(value) ? TRUE : Boolean.FALSE.equals(value) ? FALSE : ANY;
  }

  private int nulls(Expression of, int file) throws Exception {
    Column column = column(of);
    if (column != null) return column.nulls(file);
    int inner = verdict(of, file);
    return ((inner & NULL) != 0 ? TRUE : 0) | ((inner & (TRUE | FALSE)) != 0 ? FALSE : 0);
  }

  private int truth(AttributeReference of, int file) throws Exception {
    Column column = column(of);
    return column == null || !of.dataType().equals(DataTypes.BooleanType) ? ANY : column.compared(EQUAL, Boolean.TRUE, false, file);
  }

  private int compared(BinaryComparison of, int file) throws Exception {
    boolean turned = child(of, 0) instanceof Literal;
    Expression side = child(of, turned ? 1 : 0), other = child(of, turned ? 0 : 1);
    Column column = column(side);
    if (column == null || !(other instanceof Literal) || !other.dataType().equals(side.dataType())) return ANY;
    Object value = ((Literal) other).value();
    if (of instanceof EqualNullSafe) {
      if (value == null) return column.nulls(file);
      int found = column.compared(EQUAL, value, false, file);
      return (found & (TRUE | FALSE)) | ((found & NULL) != 0 ? FALSE : 0);
    }
    if (value == null) return NULL;
    if (of instanceof EqualTo) return column.compared(EQUAL, value, false, file);
    if (of instanceof LessThan) return column.compared(turned ? MOST : LESS, value, turned, file);
    if (of instanceof LessThanOrEqual) return column.compared(turned ? LESS : MOST, value, turned, file);
    if (of instanceof GreaterThan) return column.compared(turned ? LESS : MOST, value, !turned, file);
    if (of instanceof GreaterThanOrEqual) return column.compared(turned ? MOST : LESS, value, !turned, file);
    return ANY;
  }

  private int among(Expression of, int file) throws Exception {
    Column column = column(child(of, 0));
    if (column == null) return ANY;
    if (!lists.containsKey(of)) lists.put(of, values(of, column));
    Object[] found = (Object[]) lists.get(of);
    return found == null ? ANY : column.among((TreeSet) found[0], found[1] != null, file);
  }

  /* The values, and something where null is among them; null where one of them is no literal of the column's type. */
  private Object[] values(Expression of, Column column) {
    TreeSet values = new TreeSet(column.ordering);
    Object withNull = null;
    scala.collection.Iterator each = of instanceof In ? ((In) of).list().iterator() : ((InSet) of).hset().iterator();
    while (each.hasNext()) {
      Object value = each.next();
      if (of instanceof In) {
        if (!(value instanceof Literal) || !((Literal) value).dataType().equals(column.type)) return null;
        value = ((Literal) value).value();
      }
      if (value == null) withNull = of; else values.add(value);
    }
    return new Object[] {values, withNull};
  }

  private int begins(StartsWith of, int file) throws Exception {
    Column column = column(child(of, 0));
    if (column == null || !column.type.equals(DataTypes.StringType) || !(child(of, 1) instanceof Literal)) return ANY;
    Object prefix = ((Literal) child(of, 1)).value();
    return prefix == null ? NULL : column.begins((UTF8String) prefix, file);
  }

  /* The column of the table that this is; null for anything else, as for what Spark itself says of files. */
  private Column column(Expression of) throws Exception {
    if (!(of instanceof AttributeReference)) return null;
    if (!columns.containsKey(of)) {
      AttributeReference named = (AttributeReference) of;
      columns.put(of, named.metadata().equals(Metadata.empty()) ? known.column(named.name(), named.dataType()) : null);
    }
    return (Column) columns.get(of);
  }
}

/* A column in all files. What folders say of it and what commits say both hold. */
static class Column {
  private static final int TRUE = 1, FALSE = 2, NULL = 4;
  private static final int LESS = 0, MOST = 1, EQUAL = 2;

  final DataType type;
  final Comparator ordering;
  private final Range[] byFolder, stated;
  private final Object nan;

  Column(DataType type, Comparator ordering, Range[] byFolder, Range[] stated) {
    this.type = type;
    this.ordering = ordering;
    this.byFolder = byFolder;
    this.stated = stated;
    if (type.equals(DataTypes.DoubleType)) nan = Double.valueOf(Double.NaN);
    else nan = type.equals(DataTypes.FloatType) ? (Object) Float.valueOf(Float.NaN) : null;
  }

  int nulls(int file) {
    return nulls(byFolder[file]) & nulls(stated[file]);
  }

  private static int nulls(Range range) {
    return (range.nulls ? TRUE : 0) | (range.values ? FALSE : 0);
  }

  /* Of `column < value`, `<=` or `=`; `not`: of the opposite. */
  int compared(int how, Object value, boolean not, int file) {
    int found = compared(byFolder[file], how, value) & compared(stated[file], how, value);
    return not ? (found & NULL) | ((found & TRUE) != 0 ? FALSE : 0) | ((found & FALSE) != 0 ? TRUE : 0) : found;
  }

  private int compared(Range range, int how, Object value) {
    int found = range.nulls ? NULL : 0;
    if (!range.values) return found;
    if (range.low == null) return found | TRUE | FALSE;
    int low = ordering.compare(range.low, value), high = ordering.compare(range.high, value);
    if (how == LESS) found |= (low < 0 ? TRUE : 0) | (high >= 0 ? FALSE : 0);
    else if (how == MOST) found |= (low <= 0 ? TRUE : 0) | (high > 0 ? FALSE : 0);
    else found |= (low <= 0 && high >= 0 ? TRUE : 0) | (low == 0 && high == 0 ? 0 : FALSE);
    if (nan == null) return found;
    // It stands outside of the bounds.
    return found | (how != LESS && ordering.compare(nan, value) == 0 ? TRUE : FALSE);
  }

  int among(TreeSet values, boolean withNull, int file) {
    return among(byFolder[file], values, withNull) & among(stated[file], values, withNull);
  }

  private int among(Range range, TreeSet values, boolean withNull) {
    int found = range.nulls ? NULL : 0, otherwise = withNull ? NULL : FALSE;
    if (!range.values) return found;
    if (range.low == null) return found | TRUE | otherwise;
    Object next = values.ceiling(range.low);
    boolean one = ordering.compare(range.low, range.high) == 0;
    if (next != null && ordering.compare(next, range.high) <= 0) found |= one ? TRUE : TRUE | otherwise;
    else found |= otherwise;
    return nan == null ? found : found | (values.contains(nan) ? TRUE : otherwise);
  }

  int begins(UTF8String prefix, int file) {
    return begins(byFolder[file], prefix) & begins(stated[file], prefix);
  }

  private int begins(Range range, UTF8String prefix) {
    int found = range.nulls ? NULL : 0;
    if (!range.values) return found;
    if (range.low == null) return found | TRUE | FALSE;
    UTF8String low = (UTF8String) range.low, high = (UTF8String) range.high;
    boolean may = ordering.compare(high, prefix) >= 0 && (ordering.compare(low, prefix) <= 0 || low.startsWith(prefix));
    return found | FALSE | (may ? TRUE : 0);
  }
}

/* Of the values of a column in a file: whether there are nulls, whether there are others, and their bounds, null if not known. */
static class Range {
  static final Range UNKNOWN = new Range(true, true, null, null), ALL_NULL = new Range(true, false, null, null);

  final boolean nulls, values;
  final Object low, high;

  Range(boolean nulls, boolean values, Object low, Object high) {
    this.nulls = nulls;
    this.values = values;
    this.low = low;
    this.high = high;
  }

  Range or(Range other, Comparator ordering) {
    boolean nulls = this.nulls || other.nulls;
    if (!other.values) return new Range(nulls, values, low, high);
    if (!values) return new Range(nulls, true, other.low, other.high);
    if (low == null || other.low == null) return new Range(nulls, true, null, null);
    return new Range(
      nulls, true, ordering.compare(low, other.low) <= 0 ? low : other.low, ordering.compare(high, other.high) >= 0 ? high : other.high);
  }
}

/* What `bounds.py` says of the files: JSON of its own, and after a NUL each the JSON of a commit. */
static class Known {
  private static final String KEY = "_hoodie_record_key";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final String[] texts;
  private final String[] names;
  private final HashMap columns = new HashMap();
  private Map said;

  Known(String text, ArrayList files) {
    texts = text.split("\0", -1);
    names = new String[files.size()];
    for (int i = 0; i < names.length; i++) names[i] = ((Path) files.get(i)).getName();
  }

  /* null where nothing is known of it in any file. */
  synchronized Column column(String name, DataType type) throws Exception {
    if (!columns.containsKey(name)) columns.put(name, read(name, type));
    Column found = (Column) columns.get(name);
    return found == null || !found.type.equals(type) ? null : found;
  }

  private Column read(String name, DataType type) throws Exception {
    if (said == null) said = (Map) JSON.readValue(texts[0], Map.class);
    if (!((List) said.get("columns")).contains(name) || !isKnown(type)) return null;
    Comparator ordering = TypeUtils.getInterpretedOrdering(type);
    return new Column(type, ordering, byFolder(name, type, ordering), stated(name, type, ordering));
  }

  private static boolean isKnown(DataType type) {
    return type instanceof DecimalType || Arrays.asList(new Object[] {
      DataTypes.BooleanType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.FloatType, DataTypes.DoubleType,
      DataTypes.StringType, DataTypes.DateType, DataTypes.TimestampType, DataTypes.TimestampNTZType
    }).contains(type);
  }

  private Range[] byFolder(String name, DataType type, Comparator ordering) {
    Range[] found = new Range[names.length];
    Arrays.fill(found, Range.UNKNOWN);
    List entries = (List) ((Map) said.get("folders")).get(name);
    if (entries == null) return found;
    Range[] folders = new Range[entries.size()];
    for (int i = 0; i < folders.length; i++) folders[i] = range(entries.get(i), type, 1L, ordering);
    List files = (List) said.get("folders of files");
    for (int i = 0; i < found.length; i++) {
      List places = (List) files.get(i);
      for (int j = 0; j < places.size(); j++) {
        Range each = folders[((Number) places.get(j)).intValue()];
        found[i] = j == 0 ? each : found[i].or(each, ordering);
      }
    }
    return found;
  }

  private Range[] stated(String name, DataType type, Comparator ordering) throws Exception {
    Range[] found = new Range[names.length];
    Arrays.fill(found, Range.UNKNOWN);
    List commits = (List) said.get("commits"), schemas = (List) said.get("schemas");
    List files = (List) said.get("commits of files");
    Map logs = (Map) said.get("logs");
    for (int commit = 0; commit < commits.size(); commit++) {
      Number unit = (Number) ((Map) schemas.get(((Number) commits.get(commit)).intValue())).get(name);
      if (unit == null) continue;
      Map text = (Map) JSON.readValue(texts[commit + 1], Map.class);
      if (((Number) text.get("version")).intValue() != 1) continue;
      int place = ((List) text.get("columns")).indexOf(name);
      int key = name.equals(said.get("key")) ? ((List) text.get("columns")).indexOf(KEY) : -1;
      for (int i = 0; i < found.length; i++) {
        if (((Number) files.get(i)).intValue() != commit) continue;
        List copied = (List) logs.get(Integer.toString(i));
        for (int j = 0; j < (copied == null ? 1 : copied.size()); j++) {
          List entries = (List) ((Map) text.get("files")).get(copied == null ? names[i] : copied.get(j));
          Object entry = entries == null || place < 0 ? null : entries.get(place);
          if (entry == null && entries != null && key >= 0) entry = entries.get(key);
          Range each = range(entry, type, unit.longValue(), ordering);
          if (unit.intValue() == 0 && entries != null) each = Range.ALL_NULL;
          found[i] = j == 0 ? each : found[i].or(each, ordering);
        }
      }
    }
    return found;
  }

  private static Range range(Object stated, DataType type, long unit, Comparator ordering) {
    if (!(stated instanceof List) || !(((List) stated).get(0) instanceof Number)) return Range.UNKNOWN;
    List entry = (List) stated;
    boolean nulls = ((Number) entry.get(0)).longValue() > 0;
    if (entry.size() == 1) return new Range(nulls, false, null, null);
    Object low = value(entry.get(1), type, unit), high = value(entry.get(2), type, unit);
    boolean bounds = low != null && high != null && ordering.compare(low, high) <= 0;
    return new Range(nulls, true, bounds ? low : null, bounds ? high : null);
  }

  /* As Spark has it; null where it is none of the type. */
  private static Object value(Object stated, DataType type, long unit) {
    if (type.equals(DataTypes.BooleanType)) return stated instanceof Boolean ? stated : null;
    if (type.equals(DataTypes.StringType)) return stated instanceof String ? UTF8String.fromString((String) stated) : null;
    if (type instanceof DecimalType)
      return stated instanceof String ? Decimal.apply(new java.math.BigDecimal((String) stated)) : null;
    if (type.equals(DataTypes.DoubleType)) return stated instanceof Double ? stated : null;
    if (type.equals(DataTypes.FloatType))
      return stated instanceof Double ? Float.valueOf(((Double) stated).floatValue()) : null;
    if (!(stated instanceof Integer || stated instanceof Long)) return null;
    long number = ((Number) stated).longValue();
    if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) return Integer.valueOf(Math.toIntExact(number));
    return Long.valueOf(Math.multiplyExact(number, unit));
  }
}
