/* Frames of tables inside of other plans: a stream's static side reads the newest commit of each batch.
 *
 * Compiled as `bounded_files.java` is. py4j keeps methods by the name of their class, and all that Spark compiles has one name:
 * so no method here is called as one there.
 */
import java.util.*;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.PrunedScan;
import org.apache.spark.sql.types.*;
import scala.collection.immutable.Seq;

public Object generate(Object[] given) { return null; }

private static final TreeNodeTag TAG = new TreeNodeTag("hoodie");

/* What the marked parts of a plan read, with their columns. */
public HashMap marksWithin(Object plan) {
  Marked found = new Marked(new HashMap());
  ((LogicalPlan) plan).transformUpWithSubqueries(found);
  return found.columns;
}

/* The plan with others in place of the marked parts: their columns stand for those of the part. */
public Object replaced(Object plan, HashMap plans) {
  return ((LogicalPlan) plan).transformUpWithSubqueries(new Marked(plans));
}

/* Rows that a function gives whenever a query is planned, for the names of columns with \0 between them. */
public Object liveRelation(Object session, String schema, long size, java.util.function.Function rows) {
  return new LiveRelation((SparkSession) session, (StructType) DataType.fromJson(schema), size, rows);
}

static class Marked extends scala.runtime.AbstractPartialFunction {
  final HashMap columns = new HashMap();
  private final HashMap plans;

  Marked(HashMap plans) { this.plans = plans; }

  public boolean isDefinedAt(Object node) {
    scala.Option text = ((LogicalPlan) node).getTagValue(TAG);
    if (text.isDefined()) columns.put(text.get(), ((LogicalPlan) node).schema().json());
    return text.isDefined() && plans.containsKey(text.get());
  }

  public Object apply(Object node) {
    LogicalPlan part = (LogicalPlan) node;
    LogicalPlan other = (LogicalPlan) plans.get(part.getTagValue(TAG).get());
    ArrayList columns = new ArrayList();
    for (int i = 0; i < part.output().size(); i++) {
      Attribute wanted = (Attribute) part.output().apply(i);
      columns.add(new Alias(
        (Expression) other.output().apply(i), wanted.name(), wanted.exprId(), wanted.qualifier(), scala.Option.empty(),
        PythonUtils.toSeq(new ArrayList())));
    }
    Project made = new Project(PythonUtils.toSeq(columns), other);
    made.setTagValue(TAG, part.getTagValue(TAG).get());
    return made;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node) ? apply(node) : otherwise.apply(node);
  }
}

public static class LiveRelation extends BaseRelation implements PrunedScan {
  private final SparkSession session;
  private final StructType columns;
  private final long size;
  private final java.util.function.Function rows;

  LiveRelation(SparkSession session, StructType columns, long size, java.util.function.Function rows) {
    this.session = session;
    this.columns = columns;
    this.size = size;
    this.rows = rows;
  }

  public SQLContext sqlContext() { return session.sqlContext(); }

  public StructType schema() { return columns; }

  public long sizeInBytes() { return size; }

  public boolean needConversion() { return false; }

  public RDD buildScan(String[] wanted) { return (RDD) rows.apply(String.join("\0", Arrays.asList(wanted))); }
}
