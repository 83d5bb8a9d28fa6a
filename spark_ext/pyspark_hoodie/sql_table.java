/* A hoodie table in Spark's catalog: its capabilities, its reads and its writes. Python does the work.
 *
 * Janino compiles this: no lambdas, and no generics of Scala. `planning.java` makes physical plans of the scans and writes.
 */
package hoodie_spark;

import java.util.*;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.*;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

public class HoodieTable
    implements Table, SupportsRead, SupportsWrite, SupportsRowLevelOperations, SupportsMetadataColumns, TruncatableTable,
      SupportsAtomicPartitionManagement {
  static final String[] META = new String[] {
    "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"};

  private static final com.fasterxml.jackson.databind.ObjectMapper JSON = new com.fasterxml.jackson.databind.ObjectMapper();

  /* The name of the table to which this thread has just written. Until the thread loads a table, it only plans what is cached. */
  private static final ThreadLocal WRITTEN = new ThreadLocal();

  private final Function python;
  private final String name;
  private final String version;
  private final StructType schema;
  private final List partitions;
  private final Map properties;

  /* `python` answers questions about the table: the first of what it is given says which. */
  public HoodieTable(Function python, String name, String version, String schema, List partitions, Map properties) {
    this.python = python;
    this.name = name;
    this.version = version;
    this.schema = (StructType) DataType.fromJson(schema);
    this.partitions = new ArrayList(partitions);
    this.properties = new HashMap(properties);
    WRITTEN.remove();
  }

  /* Spark plans cached queries anew after a write; before 4.1 they have the table as it was. */
  void write(Object[] question) {
    ask(question);
    WRITTEN.set(name);
  }

  Object ask(Object[] question) { return python.apply(question); }

  /* Of lists and maps: Python asks for each value of them, and for the end of each, which is an exception. */
  public static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (java.io.IOException none) {
      throw new IllegalArgumentException(none);
    }
  }

  static List parsed(String list) {
    try {
      return (List) JSON.readValue(list, List.class);
    } catch (java.io.IOException none) {
      throw new IllegalArgumentException(none);
    }
  }

  public String name() { return name; }

  public StructType schema() { return schema; }

  public Map properties() { return properties; }

  public Transform[] partitioning() {
    Transform[] made = new Transform[partitions.size()];
    for (int i = 0; i < made.length; i++) made[i] = Expressions.identity((String) partitions.get(i));
    return made;
  }

  public Set capabilities() {
    return EnumSet.of(
      TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.V1_BATCH_WRITE, TableCapability.TRUNCATE,
      TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC);
  }

  public MetadataColumn[] metadataColumns() {
    MetadataColumn[] made = new MetadataColumn[META.length];
    for (int i = 0; i < made.length; i++) made[i] = new Meta(META[i]);
    return made;
  }

  /* Spark looks for cached plans by it. */
  public boolean equals(Object other) {
    return other instanceof HoodieTable && name.equals(((HoodieTable) other).name) && version.equals(((HoodieTable) other).version);
  }

  public int hashCode() { return name.hashCode(); }

  public boolean truncateTable() {
    write(new Object[] {"truncate"});
    return true;
  }

  /* Values of partitions are the texts of their paths. */
  public StructType partitionSchema() {
    StructField[] made = new StructField[partitions.size()];
    for (int i = 0; i < made.length; i++)
      made[i] = new StructField((String) partitions.get(i), DataTypes.StringType, true, Metadata.empty());
    return new StructType(made);
  }

  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow wanted) {
    ArrayList found = new ArrayList();
    for (Iterator each = ((List) ask(new Object[] {"partitions"})).iterator(); each.hasNext();) {
      List values = (List) each.next();
      boolean fits = true;
      for (int i = 0; i < names.length; i++) fits = fits && Objects.equals(values.get(partitions.indexOf(names[i])), text(wanted, i));
      Object[] row = new Object[values.size()];
      for (int i = 0; i < row.length; i++) row[i] = values.get(i) == null ? null : UTF8String.fromString((String) values.get(i));
      if (fits) found.add(new GenericInternalRow(row));
    }
    return (InternalRow[]) found.toArray(new InternalRow[0]);
  }

  /* For DROP PARTITION, where "*" stands for any text. */
  public boolean partitionExists(InternalRow wanted) {
    return Boolean.TRUE.equals(ask(new Object[] {"has partition", json(texts(wanted))}));
  }

  private List texts(InternalRow row) {
    ArrayList values = new ArrayList();
    for (int i = 0; i < partitions.size(); i++) values.add(text(row, i));
    return values;
  }

  private static String text(InternalRow row, int at) { return row.isNullAt(at) ? null : row.getUTF8String(at).toString(); }

  private boolean without(InternalRow[] dropped) {
    ArrayList all = new ArrayList();
    for (int each = 0; each < dropped.length; each++) all.add(texts(dropped[each]));
    Object result = ask(new Object[] {"drop partitions", json(all)});
    WRITTEN.set(name);
    return Boolean.TRUE.equals(result);
  }

  /* One without rows is none. */
  public void createPartition(InternalRow partition, Map properties) {}

  public void createPartitions(InternalRow[] created, Map[] properties) {}

  public boolean dropPartition(InternalRow partition) { return without(new InternalRow[] {partition}); }

  public boolean dropPartitions(InternalRow[] dropped) { return without(dropped); }

  public boolean truncatePartition(InternalRow partition) { return without(new InternalRow[] {partition}); }

  public boolean truncatePartitions(InternalRow[] emptied) { return without(emptied); }

  public void replacePartitionMetadata(InternalRow partition, Map properties) {}

  public Map loadPartitionMetadata(InternalRow partition) { return new HashMap(); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (name.equals(WRITTEN.get())) ask(new Object[] {"plan again"});
    return new Scans(this, options);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new Writes(this, info.options(), "append"); }

  /* The rows become those of a new table, or of the one in whose place it comes. */
  WriteBuilder newReplacing(LogicalWriteInfo info) { return new Writes(this, info.options(), "replace"); }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(final RowLevelOperationInfo info) {
    final HoodieTable table = this;
    return new RowLevelOperationBuilder() {
      public RowLevelOperation build() { return new Changes(table, info.command()); }
    };
  }

  static class Meta implements MetadataColumn {
    private final String name;

    Meta(String name) { this.name = name; }

    public String name() { return name; }

    public DataType dataType() { return DataTypes.StringType; }

    /* Those that say which row it is must not be null. */
    public boolean isNullable() { return false; }
  }

  static class Scans implements ScanBuilder, SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns {
    private final HoodieTable table;
    private final CaseInsensitiveStringMap options;
    private final ArrayList filters = new ArrayList();
    private StructType columns;

    Scans(HoodieTable table, CaseInsensitiveStringMap options) {
      this.table = table;
      this.options = options;
      this.columns = table.schema;
    }

    /* Takes all of them but those that Spark has to evaluate later. */
    public Seq pushFilters(Seq given) {
      ArrayList rest = new ArrayList();
      for (int i = 0; i < given.size(); i++) {
        Expression filter = (Expression) given.apply(i);
        boolean later = !filter.deterministic() || SubqueryExpression.hasSubquery(filter);
        (later ? rest : filters).add(filter);
      }
      return org.apache.spark.api.python.PythonUtils.toSeq(rest);
    }

    public Predicate[] pushedFilters() { return new Predicate[0]; }

    /* Whole columns, whichever of their fields are wanted. */
    public void pruneColumns(StructType wanted) {
      ArrayList kept = new ArrayList();
      StructField[] fields = wanted.fields();
      for (int i = 0; i < fields.length; i++) kept.add(table.field(fields[i].name()));
      columns = new StructType((StructField[]) kept.toArray(new StructField[0]));
    }

    public Scan build() { return new HoodieScan(table, columns, filters, options); }
  }

  StructField field(String column) {
    for (int i = 0; i < META.length; i++)
      if (META[i].equals(column)) return new StructField(column, DataTypes.StringType, false, Metadata.empty());
    return schema.apply(column);
  }

  public static class HoodieScan implements Scan, SupportsReportStatistics {
    final HoodieTable table;
    final StructType columns;
    final List filters;
    final Map options;
    Object planned;
    Object plannedFor;

    HoodieScan(HoodieTable table, StructType columns, List filters, CaseInsensitiveStringMap options) {
      this.table = table;
      this.columns = columns;
      this.filters = filters;
      this.options = new HashMap(options.asCaseSensitiveMap());
    }

    public StructType readSchema() { return columns; }

    public String description() { return "hoodie " + table.name; }

    public Statistics estimateStatistics() {
      final long size = ((Number) table.ask(new Object[] {"size"})).longValue();
      return new Statistics() {
        public OptionalLong sizeInBytes() { return OptionalLong.of(size); }

        public OptionalLong numRows() { return OptionalLong.empty(); }
      };
    }
  }

  static class Writes implements WriteBuilder, SupportsTruncate, SupportsOverwrite, SupportsDynamicOverwrite {
    private final HoodieTable table;
    private final Map options;
    private String mode;
    private final ArrayList values = new ArrayList();

    Writes(HoodieTable table, CaseInsensitiveStringMap options, String mode) {
      this.table = table;
      this.mode = mode;
      this.options = new HashMap(options.asCaseSensitiveMap());
    }

    public WriteBuilder truncate() {
      if (!mode.equals("replace")) mode = "overwrite";
      return this;
    }

    public WriteBuilder overwriteDynamicPartitions() {
      mode = "overwrite partitions";
      return this;
    }

    /* Partitions that a statement names, as column and value in turn. */
    public WriteBuilder overwrite(Filter[] filters) {
      mode = "overwrite values";
      for (int i = 0; i < filters.length; i++) add(filters[i]);
      if (values.isEmpty()) mode = "overwrite";
      return this;
    }

    private void add(Filter filter) {
      if (filter instanceof And) {
        add(((And) filter).left());
        add(((And) filter).right());
      } else if (filter instanceof EqualTo) {
        pair(((EqualTo) filter).attribute(), ((EqualTo) filter).value());
      } else if (filter instanceof EqualNullSafe) {
        pair(((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value());
      } else if (filter instanceof IsNull) {
        pair(((IsNull) filter).attribute(), null);
      } else if (!(filter instanceof AlwaysTrue || filter instanceof IsNotNull)) {
        values.add("");
        values.add(filter.toString());
      }
    }

    private void pair(String column, Object value) {
      values.add(column);
      values.add(value == null ? null : String.valueOf(value));
    }

    public Write build() { return new HoodieWrite(table, mode, values, options); }
  }

  public static class HoodieWrite implements V1Write {
    private final HoodieTable table;
    private final String mode;
    private final List values;
    private final Map options;

    HoodieWrite(HoodieTable table, String mode, List values, Map options) {
      this.table = table;
      this.mode = mode;
      this.values = values;
      this.options = options;
    }

    public String description() { return "hoodie " + table.name; }

    HoodieWrite ofMerge() { return new HoodieWrite(table, "merge", values, options); }

    public InsertableRelation toInsertableRelation() {
      return new InsertableRelation() {
        public void insert(org.apache.spark.sql.Dataset rows, boolean overwrite) {
          table.write(new Object[] {"write", mode, rows, options, values});
        }
      };
    }
  }

  /* MERGE, UPDATE and DELETE: Spark makes one query of rows to delete, update and insert. */
  static class Changes implements RowLevelOperation, SupportsDelta {
    private final HoodieTable table;
    private final RowLevelOperation.Command command;

    Changes(HoodieTable table, RowLevelOperation.Command command) {
      this.table = table;
      this.command = command;
      table.ask(new Object[] {"changeable", command.toString()});
    }

    public RowLevelOperation.Command command() { return command; }

    public String description() { return command + " " + table.name; }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return table.newScanBuilder(options); }

    public NamedReference[] rowId() {
      return new NamedReference[] {Expressions.column("_hoodie_record_key"), Expressions.column("_hoodie_partition_path")};
    }

    public DeltaWriteBuilder newWriteBuilder(final LogicalWriteInfo info) {
      return new DeltaWriteBuilder() {
        public DeltaWrite build() { return new ChangesWrite(table, command); }
      };
    }
  }

  public static class ChangesWrite implements DeltaWrite {
    final HoodieTable table;
    final RowLevelOperation.Command command;

    ChangesWrite(HoodieTable table, RowLevelOperation.Command command) {
      this.table = table;
      this.command = command;
    }

    /* `columns`: where in a row of the query its new values are, `ids`: where the key and the path of the stored row are. */
    V1Write of(final List columns, final List ids) {
      return new V1Write() {
        public InsertableRelation toInsertableRelation() {
          return new InsertableRelation() {
            public void insert(org.apache.spark.sql.Dataset rows, boolean overwrite) {
              table.write(new Object[] {"change", command.toString(), rows, json(columns), json(ids)});
            }
          };
        }
      };
    }
  }
}
