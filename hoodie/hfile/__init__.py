"""HFiles, version 3: sorted keys with their values in blocks, as Apache HBase and Apache Hudi's metadata table have them."""
