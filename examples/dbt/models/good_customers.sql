{{ config(materialized='view') }}

select customer from {{ ref('customers') }} where total > 10
