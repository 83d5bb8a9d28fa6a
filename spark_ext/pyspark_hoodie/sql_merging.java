/* The query that Spark makes of a MERGE whose condition equates keys: what an upsert of the source's rows does as well, or what is
 * made of the few stored rows that the source meets.
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
  private static final int DELETE = 1, UPDATE = 2, INSERT = 3;
  private static final int COMPUTED = -2;
  /* Expressions that give a value, whatever their children are; others may end in an error. */
  private static final Set CANNOT_FAIL = new HashSet(Arrays.asList(new String[] {
    "And", "CaseWhen", "Coalesce", "Concat", "Contains", "CreateNamedStruct", "EndsWith", "EqualNullSafe", "EqualTo", "GetStructField",
    "GreaterThan", "GreaterThanOrEqual", "If", "In", "InSet", "IsNotNull", "IsNull", "Length", "LessThan", "LessThanOrEqual", "Lower",
    "Not", "Or", "StartsWith", "StringTrim", "Upper"}));
  private static final Set OF_FLOATS = new HashSet(Arrays.asList(new String[] {"Add", "Multiply", "Subtract"}));
  /* Whether the rows of a pair meet. */
  private static final Attribute MEET = (Attribute) new Alias(
    Literal$.MODULE$.TrueLiteral(), "meet", NamedExpression$.MODULE$.newExprId(), Planning.seq(new ArrayList()), scala.Option.empty(),
    Planning.seq(new ArrayList())).toAttribute();

  private final MergeRows rows;
  /* Between the clauses and the join, or null; columns of its own are constants and what the optimizer pulled up. */
  private final Project middle;
  private final Join join;
  private final DataSourceV2ScanRelation target;
  private final AttributeSet given;
  /* Columns of the table, each with what it equals in the source. */
  private final Map equal = new HashMap();
  private boolean saysMore = false;
  /* Columns that stored rows keep, after `alone`. */
  private final List kept = new ArrayList();
  /* Behind the columns of the source: what is computed of them. */
  private final List computed = new ArrayList();
  /* Of pairs of rows: which clause fits, and values that are no columns. */
  private final List made = new ArrayList();

  private Merging(MergeRows rows, Project middle, Join join, DataSourceV2ScanRelation target) {
    this.rows = rows;
    this.middle = middle;
    this.join = join;
    this.target = target;
    this.given = join.right().outputSet();
    condition((Expression) join.condition().get());
  }

  /* Null: the query is another one. */
  public static Merging of(LogicalPlan plan) {
    if (!(plan instanceof MergeRows) || !((MergeRows) plan).notMatchedBySourceInstructions().isEmpty()) return null;
    LogicalPlan below = (LogicalPlan) ((MergeRows) plan).child();
    Project middle = below instanceof Project ? (Project) below : null;
    if (middle != null) below = middle.child();
    if (!(below instanceof Join)) return null;
    Join join = (Join) below;
    LogicalPlan table = join.left();
    while (table instanceof Project || table instanceof Filter) table = (LogicalPlan) ((UnaryNode) table).child();
    boolean joins = join.joinType() == RightOuter$.MODULE$ || join.joinType() == Inner$.MODULE$;
    if (!joins || join.condition().isEmpty() || !(table instanceof DataSourceV2ScanRelation)) return null;
    DataSourceV2ScanRelation target = (DataSourceV2ScanRelation) table;
    if (!(target.scan() instanceof HoodieTable.HoodieScan)) return null;
    return new Merging((MergeRows) plan, middle, join, target);
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
    return fits && other.deterministic() && equal.put(((Attribute) stored).name(), other) == null;
  }

  /* Whether rows of the source without a partner count. */
  public boolean keepsUnmatched() { return join.joinType() == RightOuter$.MODULE$; }

  /* Columns of the table that equal something of the source. */
  public List equated() { return new ArrayList(equal.keySet()); }

  /* Where in a row of `given` that is which this column of the table equals. */
  public int placeOfKey(String column) { return place((Expression) equal.get(column)); }

  private int place(Expression value) {
    Seq there = (Seq) join.right().output();
    for (int i = 0; i < there.size(); i++) if (((Expression) there.apply(i)).semanticEquals(value)) return i;
    for (int i = 0; i < computed.size(); i++) if (((Expression) computed.get(i)).semanticEquals(value)) return there.size() + i;
    computed.add(value);
    return there.size() + computed.size() - 1;
  }

  /* How many columns the source has. */
  public int width() { return join.right().output().size(); }

  /* The rows of the source, and behind their columns what was asked for. */
  public LogicalPlan given() {
    ArrayList columns = new ArrayList();
    Seq there = (Seq) join.right().output();
    for (int i = 0; i < there.size(); i++) columns.add(there.apply(i));
    for (int i = 0; i < computed.size(); i++)
      columns.add(named((Expression) computed.get(i), "computed" + i, NamedExpression$.MODULE$.newExprId()));
    return new Project(Planning.seq(columns), join.right());
  }

  // -- What needs no stored row.

  /* Where in a row of `given` stands what becomes of it, if the source alone says so; else null. Two places say what is done if its key
   * is stored (0 nothing, 1 delete, 2 update), and if not (0, 3 insert), and a place for each column has its new value: that of new
   * rows, if it is one of `kept`.
   *
   * `lists`, as JSON: where in a row of the query the values of the table's columns are, and the names of these; none of a MERGE that
   * only deletes. The columns that the condition has to equate, and those that it may.
   */
  public int[] alone(String lists) {
    List all = HoodieTable.parsed(lists);
    List columns = (List) all.get(0), names = (List) all.get(1), needed = (List) all.get(2), allowed = (List) all.get(3);
    if (saysMore || !readsAll() || !equal.keySet().containsAll(needed) || !allowed.containsAll(equal.keySet())) return null;
    Seq met = rows.matchedInstructions(), unmet = rows.notMatchedInstructions();
    Expression ifStored = operation(met), ifAbsent = operation(unmet);
    if (ifStored == null || ifAbsent == null) return null;
    // They are computed for each row of the source, and Spark computes them for those to which the clause applies.
    boolean forAll = isOne(ifStored, UPDATE) && isOne(ifAbsent, INSERT);
    if (!cannotFail(ifStored) || !cannotFail(ifAbsent)) return null;
    List values = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Expression value = value(met, unmet, ((Number) columns.get(i)).intValue(), (String) names.get(i));
      if (value == null || !(forAll || cannotFail(value))) return null;
      values.add(value);
    }
    int[] found = new int[2 + columns.size()];
    found[0] = place(ifStored);
    found[1] = place(ifAbsent);
    for (int i = 0; i < values.size(); i++) found[2 + i] = place((Expression) values.get(i));
    return found;
  }

  private static boolean isOne(Expression done, int which) { return done instanceof Literal && Integer.valueOf(which).equals(((Literal) done).value()); }

  private static boolean cannotFail(Expression value) {
    String kind = value.getClass().getSimpleName();
    boolean safe = value instanceof Attribute || value instanceof Literal || CANNOT_FAIL.contains(kind);
    if (value instanceof Cast) safe = Cast.canUpCast(((Expression) value.children().apply(0)).dataType(), value.dataType());
    if (OF_FLOATS.contains(kind)) safe = value.dataType().typeName().equals("double") || value.dataType().typeName().equals("float");
    if (kind.equals("Remainder")) {
      Object divisor = value.children().apply(1);
      safe = divisor instanceof Literal && ((Literal) divisor).value() instanceof Number && ((Number) ((Literal) divisor).value()).doubleValue() != 0;
    }
    for (int i = 0; safe && i < value.children().size(); i++) safe = cannotFail((Expression) value.children().apply(i));
    return safe;
  }

  /* What the first clause does that fits. */
  private Expression operation(Seq clauses) {
    Expression otherwise = Literal$.MODULE$.apply(Integer.valueOf(0));
    for (int i = clauses.size() - 1; i >= 0; i--) {
      MergeRows.Instruction clause = (MergeRows.Instruction) clauses.apply(i);
      Expression done = Literal$.MODULE$.apply(Integer.valueOf(0));
      if (clause.outputs().size() > 1 || !isOfSource(whole(clause.condition()))) return null;
      if (!clause.outputs().isEmpty()) done = (Expression) ((Seq) clause.outputs().apply(0)).apply(0);
      if (!(done instanceof Literal)) return null;
      otherwise = isAlways(clause) ? done : new If(whole(clause.condition()), done, otherwise);
    }
    return otherwise;
  }

  /* The value that the first clause gives which fits, or all of them give; null: not known, or not the same in all of them. */
  private Expression value(Seq met, Seq unmet, int at, String name) {
    List each = keep(met, at, name) ? new ArrayList() : values(met, at, name), others = values(unmet, at, name);
    if (each == null || others == null) return null;
    each.addAll(others);
    if (each.isEmpty()) { // of deletes, and of columns that stay
      Expression key = (Expression) equal.get(name);
      return key != null ? key : Literal$.MODULE$.create(null, ((Expression) rows.output().apply(at)).dataType());
    }
    Expression first = (Expression) each.get(0);
    for (int i = 1; i < each.size(); i++) if (!first.semanticEquals((Expression) each.get(i))) return null;
    return first;
  }

  /* Whether updates leave a column as it is. */
  private boolean keep(Seq clauses, int at, String name) {
    boolean any = false;
    for (int i = 0; i < clauses.size(); i++) {
      MergeRows.Instruction clause = (MergeRows.Instruction) clauses.apply(i);
      if (clause.outputs().isEmpty()) continue;
      Seq output = (Seq) clause.outputs().apply(0);
      if (Integer.valueOf(DELETE).equals(((Literal) output.apply(0)).value())) continue;
      if (equal.containsKey(name) || !isStored(bare(whole((Expression) output.apply(at))), name)) return false;
      any = true;
    }
    if (any) kept.add(name);
    return any;
  }

  /* After `alone`: columns that rows of stored keys keep. */
  public List kept() { return kept; }

  private List values(Seq clauses, int at, String name) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < clauses.size(); i++) {
      MergeRows.Instruction clause = (MergeRows.Instruction) clauses.apply(i);
      if (clause.outputs().isEmpty()) continue;
      Seq output = (Seq) clause.outputs().apply(0);
      if (Integer.valueOf(DELETE).equals(((Literal) output.apply(0)).value())) continue;
      Expression value = whole((Expression) output.apply(at)), key = (Expression) equal.get(name);
      if (key != null && isStored(value, name)) value = key;
      boolean fits = isOfSource(value) && (key == null || value.semanticEquals(key));
      if (!fits || (value != bare(value) && clauses.size() > 1)) return null;
      found.add(value);
    }
    return found;
  }

  private static boolean isAlways(MergeRows.Instruction clause) { return Literal$.MODULE$.TrueLiteral().equals(clause.condition()); }

  private boolean isOfSource(Expression value) { return value.deterministic() && value.references().subsetOf(given); }

  private boolean isStored(Expression value, String name) {
    return value instanceof Attribute && target.outputSet().contains((Attribute) value) && ((Attribute) value).name().equals(name);
  }

  /* With what the columns of `middle` stand for. */
  private Expression whole(Expression value) {
    return middle == null ? value : (Expression) value.transformUp(new Meant(meanings(middle)));
  }

  private static Map meanings(Project plan) {
    HashMap meant = new HashMap();
    for (int i = 0; i < plan.projectList().size(); i++)
      if (plan.projectList().apply(i) instanceof Alias) {
        Alias column = (Alias) plan.projectList().apply(i);
        meant.put(column.exprId(), column.child());
      }
    return meant;
  }

  static class Meant extends scala.runtime.AbstractPartialFunction {
    private final Map columns;

    Meant(Map columns) { this.columns = columns; }

    public boolean isDefinedAt(Object node) { return node instanceof Attribute && columns.containsKey(((Attribute) node).exprId()); }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      return isDefinedAt(node) ? columns.get(((Attribute) node).exprId()) : otherwise.apply(node);
    }
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

  // -- What is made of stored rows.

  /* The columns of the table that the query needs. */
  public List stored() { return Planning.names(target, (HoodieTable.HoodieScan) target.scan()); }

  /* The query on these rows in place of the table and of the source.
   *
   * `single`: the source has each key once. Then no stored row has several partners, which Spark has to find in one partition.
   */
  public LogicalPlan joined(LogicalPlan stored, LogicalPlan source, boolean single) {
    LogicalPlan scanned = Planning.scanned(target, stored, (HoodieTable.HoodieScan) target.scan());
    LogicalPlan table = renamed(scanned, (Seq) target.output());
    LogicalPlan left = (LogicalPlan) join.left().transformUp(new Instead(target, table));
    LogicalPlan right = renamed(source, (Seq) join.right().output());
    HintInfo broadcast = new HintInfo(new scala.Some(BROADCAST$.MODULE$));
    JoinHint hint = single ? new JoinHint(new scala.Some(broadcast), scala.Option.empty()) : join.hint();
    return on(new Join(left, right, join.joinType(), join.condition(), hint));
  }

  /* Whether the condition says which rows meet, and nothing else does. */
  public boolean equatesAlone() { return !saysMore && readsAll(); }

  /* The query on pairs of rows: columns of the table as `stored` names them, null where the row of the source meets none, those of the
   * source, and whether they meet.
   */
  public LogicalPlan paired(LogicalPlan pairs) {
    List names = stored();
    HashMap columns = new HashMap();
    for (int i = 0; i < names.size(); i++) columns.put(names.get(i), pairs.output().apply(i));
    Expression meet = (Expression) pairs.output().apply(pairs.output().size() - 1);
    ArrayList made = new ArrayList();
    Seq left = (Seq) join.left().output(), right = (Seq) join.right().output();
    for (int i = 0; i < left.size(); i++) {
      Attribute column = (Attribute) left.apply(i);
      Expression meant = column;
      for (LogicalPlan at = join.left(); at != target; at = (LogicalPlan) ((UnaryNode) at).child())
        if (at instanceof Project) meant = (Expression) meant.transformUp(new Meant(meanings((Project) at)));
      Expression value = (Expression) meant.transformUp(new Planning.Renamed(columns));
      boolean plain = meant instanceof Attribute || !meant.deterministic();
      if (!plain) value = new If(meet, value, Literal$.MODULE$.create(null, column.dataType()));
      made.add(named(value, column.name(), column.exprId()));
    }
    for (int i = 0; i < right.size(); i++) {
      Attribute column = (Attribute) right.apply(i);
      made.add(named((Expression) pairs.output().apply(names.size() + i), column.name(), column.exprId()));
    }
    return on(new Project(Planning.seq(made), pairs));
  }

  private LogicalPlan on(LogicalPlan below) {
    if (middle != null) below = new Project(middle.projectList(), below);
    return (LogicalPlan) rows.withNewChildren(Planning.seq(Arrays.asList(new Object[] {below})));
  }

  // -- What clauses make of pairs of rows: Spark computes what has to be computed, and the rest is taken where it stands.

  /* What the clauses give, those of rows that meet first: 1 if it is one of these, its operation, and for each of these columns of the
   * query, as JSON, where the value stands: the place of a column among `stored`, behind these of one of the source, behind these in `computed`;
   * -1 is null. Null: it cannot be told. The first column of `computed` is the number of the clause that fits, -1 if none does.
   */
  public String clauses(String list) {
    List wanted = HoodieTable.parsed(list);
    List found = new ArrayList(), values = new ArrayList();
    if (!read(rows.matchedInstructions(), true, wanted, found, values)) return null;
    if (!read(rows.notMatchedInstructions(), false, wanted, found, values)) return null;
    Expression number = new If(MEET, number(rows.matchedInstructions(), 0), number(rows.notMatchedInstructions(), rows.matchedInstructions().size()));
    made.clear();
    made.add(number);
    int first = stored().size() + join.right().output().size();
    for (int column = 0; column < wanted.size(); column++) {
      Expression value = null;
      for (int clause = found.size() - 1; clause >= 0; clause--) {
        Expression given = (Expression) ((List) values.get(clause)).get(column);
        int place = placeInPairs(given);
        if (place == COMPUTED) {
          if (value == null) value = Literal$.MODULE$.create(null, given.dataType());
          value = new If(new EqualTo(number, Literal$.MODULE$.apply(Integer.valueOf(clause))), given, value);
          place = first + made.size();
        }
        ((List) found.get(clause)).add(Integer.valueOf(place));
      }
      if (value != null) made.add(value);
    }
    return found.toString();
  }

  private boolean read(Seq instructions, boolean meet, List wanted, List found, List values) {
    for (int i = 0; i < instructions.size(); i++) {
      MergeRows.Instruction clause = (MergeRows.Instruction) instructions.apply(i);
      Object done = Integer.valueOf(0);
      boolean fits = clause.outputs().size() <= 1 && isOfPairs(meant(clause.condition(), meet), meet);
      Seq output = clause.outputs().isEmpty() ? null : (Seq) clause.outputs().apply(0);
      if (fits && output != null) {
        fits = output.apply(0) instanceof Literal;
        if (fits) done = ((Literal) output.apply(0)).value();
      }
      ArrayList given = new ArrayList();
      for (int column = 0; fits && column < wanted.size(); column++) {
        int at = ((Number) wanted.get(column)).intValue();
        Object nothing = Literal$.MODULE$.create(null, ((Expression) rows.output().apply(at)).dataType());
        Expression value = output == null ? (Expression) nothing : meant((Expression) output.apply(at), meet);
        fits = isOfPairs(value, meet);
        given.add(value);
      }
      if (!fits) return false;
      values.add(given);
      found.add(new ArrayList(Arrays.asList(new Object[] {Integer.valueOf(meet ? 1 : 0), done})));
    }
    return true;
  }

  /* With columns of the table and of the source alone. */
  private Expression meant(Expression value, boolean meet) {
    value = whole(value);
    for (LogicalPlan at = join.left(); meet && at != target; at = (LogicalPlan) ((UnaryNode) at).child())
      if (at instanceof Project) value = (Expression) value.transformUp(new Meant(meanings((Project) at)));
    return value;
  }

  private boolean isOfPairs(Expression value, boolean meet) {
    return value.deterministic() && value.references().subsetOf(meet ? target.outputSet().$plus$plus(given) : given);
  }

  private Expression number(Seq instructions, int first) {
    Expression number = Literal$.MODULE$.apply(Integer.valueOf(-1));
    for (int i = instructions.size() - 1; i >= 0; i--) {
      MergeRows.Instruction clause = (MergeRows.Instruction) instructions.apply(i);
      Expression mine = Literal$.MODULE$.apply(Integer.valueOf(first + i));
      number = isAlways(clause) ? mine : new If(meant(clause.condition(), first == 0), mine, number);
    }
    return number;
  }

  private int placeInPairs(Expression value) {
    if (value instanceof Literal && ((Literal) value).value() == null) return -1;
    if (!(value instanceof Attribute)) return COMPUTED;
    Seq there = (Seq) join.right().output();
    for (int i = 0; i < there.size(); i++) if (((Expression) there.apply(i)).semanticEquals(value)) return stored().size() + i;
    return stored().indexOf(((Attribute) value).name());
  }

  /* Whether something is left for Spark: a condition, or a value. */
  public boolean computes() {
    boolean any = made.size() > 1;
    Seq met = rows.matchedInstructions(), unmet = rows.notMatchedInstructions();
    any = any || !(met.isEmpty() || isAlways((MergeRows.Instruction) met.apply(0)));
    return any || !(unmet.isEmpty() || isAlways((MergeRows.Instruction) unmet.apply(0)));
  }

  /* The places that `computed` needs. */
  public List needed() {
    TreeSet found = new TreeSet();
    for (int i = 0; i < made.size(); i++) {
      scala.collection.Iterator columns = ((Expression) made.get(i)).references().iterator();
      while (columns.hasNext()) {
        Attribute column = (Attribute) columns.next();
        if (!column.semanticEquals(MEET)) found.add(Integer.valueOf(placeInPairs(column)));
      }
    }
    return new ArrayList(found);
  }

  /* The query on pairs of rows: first whether they meet, then what is `needed`. */
  public LogicalPlan computed(LogicalPlan pairs) {
    HashMap there = new HashMap();
    there.put(MEET.exprId(), pairs.output().apply(0));
    List needed = needed(), names = stored();
    for (int i = 0; i < needed.size(); i++) {
      int place = ((Integer) needed.get(i)).intValue();
      Object column = null;
      if (place >= names.size()) column = join.right().output().apply(place - names.size());
      else for (int j = 0; column == null; j++)
        if (((Attribute) target.output().apply(j)).name().equals(names.get(place))) column = target.output().apply(j);
      there.put(((Attribute) column).exprId(), pairs.output().apply(i + 1));
    }
    ArrayList columns = new ArrayList();
    for (int i = 0; i < made.size(); i++) {
      Expression value = (Expression) ((Expression) made.get(i)).transformUp(new Meant(there));
      columns.add(named(value, "c" + i, NamedExpression$.MODULE$.newExprId()));
    }
    return new Project(Planning.seq(columns), pairs);
  }

  static class Instead extends scala.runtime.AbstractPartialFunction {
    private final Object one, other;

    Instead(Object one, Object other) {
      this.one = one;
      this.other = other;
    }

    public boolean isDefinedAt(Object node) { return node == one; }

    public Object applyOrElse(Object node, scala.Function1 otherwise) { return node == one ? other : otherwise.apply(node); }
  }

  /* The first columns of a plan as these. */
  static LogicalPlan renamed(LogicalPlan plan, Seq wanted) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < wanted.size(); i++) {
      Attribute column = (Attribute) wanted.apply(i);
      columns.add(named((Expression) plan.output().apply(i), column.name(), column.exprId()));
    }
    return new Project(Planning.seq(columns), plan);
  }

  private static Alias named(Expression value, String name, ExprId id) {
    Seq none = Planning.seq(new ArrayList());
    return new Alias(value, name, id, none, scala.Option.empty(), none);
  }
}
