{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns',
    options={'type': 'mor', 'preCombineField': 'updated_at'}
) }}

select id, customer, cast(amount as decimal(10, 2)) as amount, day, updated_at
from {{ ref('raw_orders') }}
{% if is_incremental() %}
where updated_at >= (select max(updated_at) from {{ this }})
{% endif %}
