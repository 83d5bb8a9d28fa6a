/* What Spark 3.5 finds by the name of the format.
 *
 * That is the name of the package. Spark then asks its catalog for a table.
 */
package PACKAGE;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class DefaultSource implements TableProvider {
  public StructType inferSchema(CaseInsensitiveStringMap options) { throw refusal(); }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) { throw refusal(); }

  private static RuntimeException refusal() {
    return new UnsupportedOperationException(
      "Spark 3.5 has no formats written in Python: call pyspark_hoodie.enable(spark), and use spark.read.format, or a table by name");
  }
}
