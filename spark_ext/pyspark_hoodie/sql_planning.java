/* Physical plans of statements about hoodie tables.
 *
 * Scans are plans that Python makes, and writes hand Python their rows.
 */
package hoodie_spark;

import java.util.*;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.*;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

public class Planning extends SparkStrategy {
  static Seq seq(List values) { return PythonUtils.toSeq(values); }

  public Seq apply(LogicalPlan plan) {
    ArrayList made = new ArrayList();
    if (plan instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
      if (relation.scan() instanceof HoodieTable.HoodieScan) made.add(scan(relation, (HoodieTable.HoodieScan) relation.scan()));
    } else if (plan instanceof Project && isOfScan(plan)) {
      made.add(new ProjectExec(((Project) plan).projectList(), planLater(((Project) plan).child())));
    } else if (plan instanceof Filter && isOfScan(plan)) {
      made.add(new FilterExec(((Filter) plan).condition(), planLater(((Filter) plan).child())));
    } else if (plan instanceof WriteDelta) {
      WriteDelta write = (WriteDelta) plan;
      if (write.write().isDefined() && write.write().get() instanceof HoodieTable.ChangesWrite) {
        HoodieTable.ChangesWrite changes = (HoodieTable.ChangesWrite) write.write().get();
        List columns = new ArrayList();
        if (write.projections().rowProjection().isDefined())
          columns = ordinals((org.apache.spark.sql.catalyst.ProjectingInternalRow) write.projections().rowProjection().get());
        made.add(written(
          changes.table, write.query(), changes.of(columns, ordinals(write.projections().rowIdProjection())),
          (LogicalPlan) write.originalTable()));
      }
    } else if (plan instanceof V2WriteCommand) {
      scala.Option write = writeOf(plan);
      if (write != null && write.isDefined() && write.get() instanceof HoodieTable.HoodieWrite) {
        V2WriteCommand command = (V2WriteCommand) plan;
        DataSourceV2Relation relation = (DataSourceV2Relation) command.table();
        HoodieTable.HoodieWrite how = (HoodieTable.HoodieWrite) write.get();
        boolean merges = plan instanceof AppendData ? reads(command.query(), relation) : isInsertOnlyMerge(plan);
        if (merges) how = how.ofMerge();
        made.add(written((SupportsWrite) relation.table(), command.query(), how, relation));
      }
    }
    return seq(made);
  }

  /* A MERGE that only inserts has a plan of its own since Spark 4.3. Before, it is an INSERT that reads the very relation to which
   * its rows go.
   */
  private static boolean isInsertOnlyMerge(LogicalPlan plan) { return plan.getClass().getSimpleName().equals("InsertOnlyMerge"); }

  private static boolean reads(LogicalPlan plan, DataSourceV2Relation relation) {
    if (plan instanceof DataSourceV2ScanRelation) {
      Seq output = (Seq) ((DataSourceV2ScanRelation) plan).relation().output();
      return !output.isEmpty() && relation.outputSet().contains((Attribute) output.apply(0));
    }
    boolean found = false;
    for (int i = 0; i < plan.children().size(); i++) found = found || reads((LogicalPlan) plan.children().apply(i), relation);
    return found;
  }

  /* Of these Spark would make a scan together with what is below them. */
  private static boolean isOfScan(LogicalPlan plan) {
    while (plan instanceof Project || plan instanceof Filter) plan = (LogicalPlan) ((UnaryNode) plan).child();
    return plan instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) plan).scan() instanceof HoodieTable.HoodieScan;
  }

  private static scala.Option writeOf(LogicalPlan plan) {
    if (plan instanceof AppendData) return ((AppendData) plan).write();
    if (plan instanceof OverwriteByExpression) return ((OverwriteByExpression) plan).write();
    if (plan instanceof OverwritePartitionsDynamic) return ((OverwritePartitionsDynamic) plan).write();
    if (isInsertOnlyMerge(plan)) return (scala.Option) ((scala.Product) plan).productElement(2);
    return null;
  }

  private static List ordinals(org.apache.spark.sql.catalyst.ProjectingInternalRow projection) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < projection.colOrdinals().size(); i++) found.add(projection.colOrdinals().apply(i));
    return found;
  }

  /* The exec node by which Spark hands rows to sources of its first interface. */
  private static SparkPlan written(SupportsWrite table, LogicalPlan query, V1Write write, final LogicalPlan target) {
    scala.Function0 refresh = new scala.runtime.AbstractFunction0() {
      public Object apply() {
        SparkSession session = SparkSession.active();
        session.sharedState().cacheManager().recacheByPlan(session, target);
        return scala.runtime.BoxedUnit.UNIT;
      }
    };
    return new AppendDataExecV1(table, query, refresh, write);
  }

  /* The plan of a scan: while the query runs it is planned again, and subqueries must be those that Spark knows by then. */
  private static SparkPlan scan(DataSourceV2ScanRelation relation, HoodieTable.HoodieScan scan) {
    Object key = Arrays.asList(new Object[] {relation.output(), scan.table.ask(new Object[] {"snapshot"})});
    if (!key.equals(scan.plannedFor)) {
      scan.planned = newScan(relation, scan);
      scan.plannedFor = key;
    }
    return (SparkPlan) ((SparkPlan) scan.planned).clone();
  }

  /* The columns that a scan reads: those that it gives, and those of its filters. */
  static List names(DataSourceV2ScanRelation relation, HoodieTable.HoodieScan scan) {
    LinkedHashSet names = new LinkedHashSet();
    for (int i = 0; i < relation.output().size(); i++) names.add(((Attribute) relation.output().apply(i)).name());
    for (Iterator each = scan.filters.iterator(); each.hasNext();) {
      scala.collection.Iterator columns = ((Expression) each.next()).references().iterator();
      while (columns.hasNext()) names.add(((Attribute) columns.next()).name());
    }
    return new ArrayList(names);
  }

  /* What a scan gives of these rows, which have the columns that it reads. */
  static LogicalPlan scanned(DataSourceV2ScanRelation relation, LogicalPlan rows, HoodieTable.HoodieScan scan) {
    HashMap stored = new HashMap();
    for (int i = 0; i < rows.output().size(); i++) {
      Attribute column = (Attribute) rows.output().apply(i);
      stored.put(column.name(), column);
    }
    for (Iterator each = scan.filters.iterator(); each.hasNext();)
      rows = new Filter((Expression) ((Expression) each.next()).transformUp(new Renamed(stored)), rows);
    ArrayList columns = new ArrayList();
    for (int i = 0; i < relation.output().size(); i++) columns.add(stored.get(((Attribute) relation.output().apply(i)).name()));
    return new Project(seq(columns), rows);
  }

  private static SparkPlan newScan(DataSourceV2ScanRelation relation, HoodieTable.HoodieScan scan) {
    LogicalPlan stored = (LogicalPlan) scan.table.ask(new Object[] {"rows", HoodieTable.json(names(relation, scan)), HoodieTable.json(scan.options)});
    LogicalPlan rows = scanned(relation, stored, scan);
    SparkPlan plan = Dataset.ofRows(SparkSession.active(), rows).queryExecution().sparkPlan();
    ArrayList renamed = new ArrayList();
    for (int i = 0; i < relation.output().size(); i++) {
      Attribute wanted = (Attribute) relation.output().apply(i);
      renamed.add(new Alias(
        (Expression) plan.output().apply(i), wanted.name(), wanted.exprId(), wanted.qualifier(), scala.Option.empty(),
        seq(new ArrayList())));
    }
    return new ProjectExec(seq(renamed), plan);
  }

  static class Renamed extends scala.runtime.AbstractPartialFunction {
    private final Map columns;

    Renamed(Map columns) { this.columns = columns; }

    public boolean isDefinedAt(Object node) {
      return node instanceof Attribute && columns.containsKey(((Attribute) node).name());
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      return isDefinedAt(node) ? columns.get(((Attribute) node).name()) : otherwise.apply(node);
    }
  }

  public static void install(SparkSession session) {
    ArrayList kept = new ArrayList();
    Seq now = session.experimental().extraStrategies();
    for (int i = 0; i < now.size(); i++) if (!(now.apply(i) instanceof Planning)) kept.add(now.apply(i));
    kept.add(new Planning());
    session.experimental().extraStrategies_$eq(seq(kept));
  }

  public static Dataset frame(SparkSession session, LogicalPlan plan) { return Dataset.ofRows(session, plan); }

  /* Settings of the session that are about our tables. */
  public static String settings(SparkSession session) {
    HashMap found = new HashMap();
    for (Iterator each = new HashMap(session.sessionState().conf().settings()).entrySet().iterator(); each.hasNext();) {
      Map.Entry setting = (Map.Entry) each.next();
      if (((String) setting.getKey()).startsWith("hoodie.")) found.put(setting.getKey(), setting.getValue());
    }
    return HoodieTable.json(found);
  }
}
