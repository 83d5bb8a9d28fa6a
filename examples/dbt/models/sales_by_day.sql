{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day') }}

select customer, sum(amount) as total, day
from {{ ref('orders') }}
{% if is_incremental() %}
where day >= (select max(day) from {{ this }})
{% endif %}
group by customer, day
