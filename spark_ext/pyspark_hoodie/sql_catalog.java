/* The session's catalog, which also has hoodie tables.
 *
 * Entries are kept where Spark keeps them. Python makes and opens the tables.
 */
package hoodie_spark;

import java.lang.reflect.Method;
import java.util.*;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.catalog.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.classic.SparkSession;

public class HoodieCatalog extends DelegatingCatalogExtension implements StagingTableCatalog {
  private static volatile Function python;
  private static volatile Set formats = new HashSet();

  /* Who answers for the catalog, and the names of our format. */
  public static void connect(Function function, List names) {
    python = function;
    formats = new HashSet(names);
  }

  private static boolean isOurs(Object provider) {
    return provider != null && formats.contains(provider.toString().toLowerCase(Locale.ROOT));
  }

  static Object ask(Object[] question) { return python.apply(question); }

  static SessionCatalog entries() { return SparkSession.active().sessionState().catalog(); }

  private static TableIdentifier named(Identifier ident) {
    String database = ident.namespace().length == 1 ? ident.namespace()[0] : entries().getCurrentDatabase();
    return new TableIdentifier(ident.name(), scala.Option.apply(database));
  }

  /* hoodie.`path` */
  private static boolean isPath(Identifier ident) {
    String[] above = ident.namespace();
    return (above.length == 0 || (above.length == 1 && isOurs(above[0]))) && ident.name().indexOf('/') >= 0;
  }

  /* The catalog `hoodie` of sessions whose own catalog is another format's: entries are those of the session. */
  public static class Beside extends HoodieCatalog {
    public Beside() { setDelegateCatalog(new V2SessionCatalog(entries())); }

    public String name() { return "hoodie"; }

    protected boolean makes(Map properties) { return properties.get("provider") == null || super.makes(properties); }
  }

  protected boolean makes(Map properties) { return isOurs(properties.get("provider")); }

  /* The entry of a table of ours; null for everything else. */
  private static CatalogTable entry(Identifier ident) {
    if (ident.namespace().length > 1) return null;
    try {
      CatalogTable found = entries().getTableMetadata(named(ident));
      return found.provider().isDefined() && isOurs(found.provider().get()) ? found : null;
    } catch (Exception missing) {
      return null;
    }
  }

  private Table opened(Identifier ident, Object moment) throws NoSuchTableException {
    Long thread = Long.valueOf(Thread.currentThread().getId());
    if (isPath(ident)) {
      Object table = ask(new Object[] {"open path", SparkSession.active(), ident.name(), moment, thread});
      if (table == null) throw new NoSuchTableException(ident);
      return (Table) table;
    }
    CatalogTable entry = entry(ident);
    return entry == null ? null : (Table) ask(new Object[] {"open", SparkSession.active(), HoodieTable.json(facts(entry)), moment, thread});
  }

  /* What Python wants to know of an entry. */
  public static Map facts(CatalogTable entry) {
    HashMap found = new HashMap();
    found.put("name", entry.identifier().unquotedString());
    found.put("table", entry.identifier().table());
    found.put("database", entry.database());
    found.put("provider", entry.provider().get());
    found.put("path", CatalogUtils.URIToString((java.net.URI) entry.storage().locationUri().get()));
    found.put("managed", Boolean.valueOf(entry.tableType().name().equals("MANAGED")));
    found.put("schema", entry.schema().json());
    found.put("comment", entry.comment().isDefined() ? entry.comment().get() : null);
    found.put("properties", plain(entry.properties()));
    found.put("storage", plain(entry.storage().properties()));
    return found;
  }

  private static Map plain(scala.collection.Map given) {
    HashMap found = new HashMap();
    for (scala.collection.Iterator each = given.iterator(); each.hasNext();) {
      scala.Tuple2 pair = (scala.Tuple2) each.next();
      found.put(pair._1(), pair._2());
    }
    return found;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Table table = opened(ident, null);
    return table == null ? super.loadTable(ident) : table;
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    Table table = opened(ident, Long.valueOf(timestamp));
    return table == null ? super.loadTable(ident, timestamp) : table;
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    Table table = opened(ident, version);
    return table == null ? super.loadTable(ident, version) : table;
  }

  public boolean tableExists(Identifier ident) {
    return isPath(ident) ? ask(new Object[] {"exists", SparkSession.active(), ident.name()}) != null : super.tableExists(ident);
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!makes(properties)) return super.createTable(ident, columns, partitions, properties);
    return createTable(ident, CatalogV2Util.v2ColumnsToStructType(columns), partitions, properties);
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!makes(properties)) return super.createTable(ident, schema, partitions, properties);
    HoodieTable made = unnamed(ident, schema, partitions, properties, null, false);
    made.ask(new Object[] {"name"});
    return made;
  }

  /* A table with files and without its name. `replaced`: the entry in whose place it comes, without anything if that is another format's. */
  private HoodieTable unnamed(
      Identifier ident, StructType schema, Transform[] partitions, Map properties, Map replaced, boolean ofQuery)
      throws TableAlreadyExistsException {
    if (replaced == null && tableExists(ident)) throw new TableAlreadyExistsException(ident);
    ArrayList by = new ArrayList();
    for (int i = 0; i < partitions.length; i++) by.add(partitions[i].describe());
    TableIdentifier name = named(ident);
    return (HoodieTable) ask(new Object[] {
      "create", SparkSession.active(), name.table(), name.database().get(), entries().defaultTablePath(name).toString(), schema.json(),
      by, new HashMap(properties), replaced, Boolean.valueOf(ofQuery)});
  }

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!makes(properties)) return ofOthers(ident, schema, partitions, properties);
    return new Staged(unnamed(ident, schema, partitions, properties, null, true));
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    try {
      if (tableExists(ident)) return stageReplace(ident, schema, partitions, properties);
      return stageCreate(ident, schema, partitions, properties);
    } catch (TableAlreadyExistsException other) {
      throw new ConcurrentModificationException(other);
    } catch (NoSuchTableException other) {
      throw new ConcurrentModificationException(other);
    }
  }

  /* The query may read what it replaces, which stays where it fails. */
  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    if (!tableExists(ident)) throw new NoSuchTableException(ident);
    try {
      if (makes(properties)) {
        CatalogTable old = entry(ident);
        Map replaced = old == null ? new HashMap() : facts(old);
        return new Staged(unnamed(ident, schema, partitions, properties, replaced, true));
      }
      dropTable(ident);
      return ofOthers(ident, schema, partitions, properties);
    } catch (TableAlreadyExistsException other) {
      throw new ConcurrentModificationException(other);
    }
  }

  /* As Spark treats tables of catalogs that cannot stage them. */
  private StagedTable ofOthers(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Table made = super.createTable(ident, schema, partitions, properties);
    try {
      return new OfOthers(this, ident, made == null ? super.loadTable(ident) : made);
    } catch (NoSuchTableException other) {
      throw new ConcurrentModificationException(other);
    }
  }

  static class Staged implements StagedTable, SupportsWrite {
    protected final Table table;

    Staged(Table table) { this.table = table; }

    public void commitStagedChanges() { ((HoodieTable) table).ask(new Object[] {"name"}); }

    public void abortStagedChanges() { ((HoodieTable) table).ask(new Object[] {"undo"}); }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return ((HoodieTable) table).newReplacing(info); }

    public String name() { return table.name(); }

    public StructType schema() { return table.schema(); }

    public Transform[] partitioning() { return table.partitioning(); }

    public Map properties() { return table.properties(); }

    public Set capabilities() { return table.capabilities(); }
  }

  static class OfOthers extends Staged {
    private final HoodieCatalog catalog;
    private final Identifier ident;

    OfOthers(HoodieCatalog catalog, Identifier ident, Table table) {
      super(table);
      this.catalog = catalog;
      this.ident = ident;
    }

    public void commitStagedChanges() {}

    public void abortStagedChanges() { catalog.dropTable(ident); }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return ((SupportsWrite) table).newWriteBuilder(info); }
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    CatalogTable entry = entry(ident);
    if (entry == null) return super.alterTable(ident, changes);
    ask(new Object[] {"alter", SparkSession.active(), HoodieTable.json(facts(entry)), Arrays.asList(changes)});
    return loadTable(ident);
  }

  /* Keep an entry for a table. */
  public static void register(
      String table, String database, String provider, String location, boolean managed, String schema, List partitions,
      Map properties, String comment) throws Exception {
    TableIdentifier name = new TableIdentifier(table, scala.Option.apply(database));
    String first = managed ? entries().defaultTablePath(name).toString() : location;
    HashMap given = new HashMap();
    given.put(Integer.valueOf(0), name);
    given.put(Integer.valueOf(1), managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL());
    given.put(Integer.valueOf(2), at(first));
    given.put(Integer.valueOf(3), DataType.fromJson(schema));
    given.put(Integer.valueOf(4), scala.Option.apply(provider));
    given.put(Integer.valueOf(5), PythonUtils.toSeq(new ArrayList(partitions)));
    given.put(Integer.valueOf(11), PythonUtils.toScalaMap(properties));
    given.put(Integer.valueOf(14), scala.Option.apply(comment));
    Object companion = Class.forName("org.apache.spark.sql.catalyst.catalog.CatalogTable$").getField("MODULE$").get(null);
    entries().createTable((CatalogTable) with(companion, "apply", given), false, false);
    // A Hive metastore drops the folder that it chose itself, unless it is told of another later.
    if (!first.equals(location)) {
      given.clear();
      given.put(Integer.valueOf(2), at(location));
      entries().alterTable((CatalogTable) with(entries().getTableMetadata(name), "copy", given));
    }
  }

  private static Object at(String location) throws Exception {
    HashMap given = new HashMap();
    given.put(Integer.valueOf(0), scala.Option.apply(CatalogUtils.stringToURI(location)));
    return with(CatalogStorageFormat.empty(), "copy", given);
  }

  /* Another entry in the place of one. The files of a managed table go last. */
  public static void replace(
      String table, String database, String provider, String location, boolean managed, String schema, List partitions,
      Map properties, String comment) throws Exception {
    TableIdentifier name = new TableIdentifier(table, scala.Option.apply(database));
    CatalogTable old = entries().getTableMetadata(name);
    boolean wasManaged = old.tableType().name().equals("MANAGED");
    if (wasManaged) {
      HashMap given = new HashMap();
      given.put(Integer.valueOf(1), CatalogTableType.EXTERNAL());
      entries().alterTable((CatalogTable) with(old, "copy", given));
    }
    entries().dropTable(name, false, false);
    register(table, database, provider, location, managed, schema, partitions, properties, comment);
    if (wasManaged) {
      Path folder = new Path((java.net.URI) old.storage().locationUri().get());
      folder.getFileSystem(SparkSession.active().sessionState().newHadoopConf()).delete(folder, true);
    }
  }

  /* Give an entry other properties. */
  public static void alter(String database, String table, Map properties, String comment) throws Exception {
    CatalogTable entry = entries().getTableMetadata(new TableIdentifier(table, scala.Option.apply(database)));
    HashMap given = new HashMap();
    given.put(Integer.valueOf(11), PythonUtils.toScalaMap(properties));
    given.put(Integer.valueOf(14), scala.Option.apply(comment));
    entries().alterTable((CatalogTable) with(entry, "copy", given));
  }

  /* Call a method of a case class with some of its arguments; of the others it says the defaults. Their number differs by version. */
  private static Object with(Object owner, String name, Map given) throws Exception {
    Method[] methods = owner.getClass().getMethods();
    Method found = null;
    for (int i = 0; i < methods.length; i++)
      if (methods[i].getName().equals(name) && (found == null || methods[i].getParameterCount() > found.getParameterCount()))
        found = methods[i];
    Object[] arguments = new Object[found.getParameterCount()];
    for (int i = 0; i < arguments.length; i++)
      arguments[i] = given.containsKey(Integer.valueOf(i))
        ? given.get(Integer.valueOf(i))
        : owner.getClass().getMethod(name + "$default$" + (i + 1), new Class[0]).invoke(owner, new Object[0]);
    return found.invoke(owner, arguments);
  }
}
