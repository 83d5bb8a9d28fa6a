/* Hoodie's table functions in the session's registry.
 *
 * Python makes the plan of their rows while Spark analyzes a statement.
 */
package hoodie_spark;

import java.util.*;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

public class HoodieFunctions {
  static class Call extends scala.runtime.AbstractFunction1 {
    private final String name;

    Call(String name) { this.name = name; }

    public Object apply(Object given) {
      Seq parameters = (Seq) given;
      ArrayList values = new ArrayList();
      for (int i = 0; i < parameters.size(); i++) {
        Object value = ((Expression) parameters.apply(i)).eval(null);
        values.add(value == null ? null : value.toString());
      }
      return HoodieCatalog.ask(new Object[] {"function", SparkSession.active(), name, values});
    }
  }

  public static void install(SparkSession session, List names) {
    for (Iterator each = names.iterator(); each.hasNext();) {
      String name = (String) each.next();
      ExpressionInfo info = new ExpressionInfo(HoodieFunctions.class.getName(), name);
      try {
        session.sessionState().tableFunctionRegistry().registerFunction(plain(name), info, new Call(name));
      } catch (AssertionError needsItWhole) {
        session.sessionState().tableFunctionRegistry().registerFunction(whole(name), info, new Call(name));
      }
    }
  }

  public static void remove(SparkSession session, List names) {
    for (Iterator each = names.iterator(); each.hasNext();) {
      String name = (String) each.next();
      try {
        session.sessionState().tableFunctionRegistry().dropFunction(plain(name));
      } catch (AssertionError needsItWhole) {
        session.sessionState().tableFunctionRegistry().dropFunction(whole(name));
      }
    }
  }

  /* Spark knows a session's functions by their names alone, and since 4.2 by where they are, too. */
  private static FunctionIdentifier plain(String name) { return new FunctionIdentifier(name); }

  private static FunctionIdentifier whole(String name) {
    return new FunctionIdentifier(name, scala.Option.apply("session"), scala.Option.apply("system"));
  }
}
