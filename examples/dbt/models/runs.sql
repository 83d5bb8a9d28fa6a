{{ config(materialized='incremental', incremental_strategy='append') }}

select count(*) as orders, current_timestamp() as at from {{ ref('orders') }}
