{%- set columns = dict(order='first_order') -%}
select {{ columns['order'] }}, {{ {'a': {'b': 1}}['a']['b'] }}
from {{ ref('stg_customers') }}
left join {{ ref( 'shop' , 'stg_orders' ) }} using (customer)
