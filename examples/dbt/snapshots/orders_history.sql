{% snapshot orders_history %}
{{ config(target_schema='orders', unique_key='id', strategy='timestamp', updated_at='updated_at') }}

select * from {{ ref('raw_orders') }}

{% endsnapshot %}

{% snapshot amounts_history %}
{{ config(target_schema='orders', unique_key='id', strategy='check', check_cols=['amount'], hard_deletes='invalidate') }}

select * from {{ ref('raw_orders') }}

{% endsnapshot %}
