/* The query that Spark makes of a MERGE which an upsert of the source's rows does as well.
 *
 * Spark would shuffle and sort the whole table, for its join keeps rows of the source that have no partner.
 */
package hoodie_spark;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

public class Merging {
  private static final Set KEY_TYPES = new HashSet(Arrays.asList(new String[] {"string", "byte", "short", "integer", "long", "date"}));

  private final MergeRows rows;
  private final Join join;
  private final DataSourceV2ScanRelation target;
  private final AttributeSet given;
  /* Columns of the table, each with what it equals in the source. */
  private final Map equal = new HashMap();
  private boolean saysMore = false;

  private Merging(MergeRows rows, Join join, DataSourceV2ScanRelation target) {
    this.rows = rows;
    this.join = join;
    this.target = target;
    this.given = join.right().outputSet();
    condition((Expression) join.condition().get());
  }

  /* Null: the query is another one. */
  public static Merging of(LogicalPlan plan) {
    if (!(plan instanceof MergeRows) || !((MergeRows) plan).notMatchedBySourceInstructions().isEmpty()) return null;
    LogicalPlan below = (LogicalPlan) ((MergeRows) plan).child();
    if (below instanceof Project) below = ((Project) below).child();
    if (!(below instanceof Join)) return null;
    Join join = (Join) below;
    LogicalPlan table = join.left();
    while (table instanceof Project || table instanceof Filter) table = (LogicalPlan) ((UnaryNode) table).child();
    if (join.joinType() != RightOuter$.MODULE$ || join.condition().isEmpty() || !(table instanceof DataSourceV2ScanRelation)) return null;
    DataSourceV2ScanRelation target = (DataSourceV2ScanRelation) table;
    if (!(target.scan() instanceof HoodieTable.HoodieScan)) return null;
    return new Merging((MergeRows) plan, join, target);
  }

  private void condition(Expression part) {
    if (part instanceof And) {
      condition(((And) part).left());
      condition(((And) part).right());
      return;
    }
    if (!(part instanceof EqualTo) || !(pair(part, 0, 1) || pair(part, 1, 0))) saysMore = true;
  }

  private boolean pair(Expression part, int one, int two) {
    Expression stored = (Expression) part.children().apply(one), other = (Expression) part.children().apply(two);
    boolean fits = stored instanceof Attribute && target.outputSet().contains((Attribute) stored) && other.references().subsetOf(given);
    fits = fits && stored.dataType().equals(other.dataType()) && KEY_TYPES.contains(stored.dataType().typeName());
    return fits && equal.put(((Attribute) stored).name(), other) == null;
  }

  /* The rows by which an upsert does the same, whether a key is stored or not; null: none does.
   *
   * `columns`: where in a row of the query the values of the table's columns `names` are. `needed`, `allowed`: columns that the
   * condition has to equate, and may.
   */
  public LogicalPlan upsert(List columns, List names, List needed, List allowed) {
    if (saysMore || !readsAll() || !equal.keySet().containsAll(needed) || !allowed.containsAll(equal.keySet())) return null;
    Seq updated = only(rows.matchedInstructions(), 2), inserted = only(rows.notMatchedInstructions(), 3);
    if (updated == null || inserted == null) return null;
    ArrayList values = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      int at = ((Number) columns.get(i)).intValue();
      Expression value = bare((Expression) inserted.apply(at));
      if (!value.deterministic() || !value.references().subsetOf(given)) return null;
      if (!value.semanticEquals(bare((Expression) updated.apply(at)))) return null;
      Expression key = (Expression) equal.get(names.get(i));
      if (key != null && !value.semanticEquals(key)) return null;
      values.add(named((Expression) inserted.apply(at), (String) names.get(i), NamedExpression$.MODULE$.newExprId()));
    }
    return new Project(Planning.seq(values), join.right());
  }

  /* What a clause without a condition makes of its rows, if it is the only one and does this: 2 updates, 3 inserts. */
  private static Seq only(Seq clauses, int operation) {
    if (clauses.size() != 1) return null;
    MergeRows.Instruction clause = (MergeRows.Instruction) clauses.apply(0);
    if (!Literal$.MODULE$.TrueLiteral().equals(clause.condition()) || clause.outputs().size() != 1) return null;
    Seq output = (Seq) clause.outputs().apply(0);
    Object done = output.apply(0);
    return done instanceof Literal && Integer.valueOf(operation).equals(((Literal) done).value()) ? output : null;
  }

  private static Expression bare(Expression value) {
    return value.getClass().getSimpleName().equals("AssertNotNull") ? (Expression) value.children().apply(0) : value;
  }

  /* Whether all rows of the table are joined but those that have null for a key. */
  private boolean readsAll() {
    boolean all = true;
    List filters = ((HoodieTable.HoodieScan) target.scan()).filters;
    for (int i = 0; i < filters.size(); i++) all = all && leavesNulls((Expression) filters.get(i));
    LogicalPlan table = join.left();
    while (table instanceof Project || table instanceof Filter) {
      if (table instanceof Filter) all = all && leavesNulls(((Filter) table).condition());
      table = (LogicalPlan) ((UnaryNode) table).child();
    }
    return all;
  }

  private boolean leavesNulls(Expression filter) {
    if (filter instanceof And) return leavesNulls(((And) filter).left()) && leavesNulls(((And) filter).right());
    if (!(filter instanceof IsNotNull) || !(((IsNotNull) filter).child() instanceof Attribute)) return false;
    return equal.containsKey(((Attribute) ((IsNotNull) filter).child()).name());
  }

  private static Alias named(Expression value, String name, ExprId id) {
    Seq none = Planning.seq(new ArrayList());
    return new Alias(value, name, id, none, scala.Option.empty(), none);
  }
}
