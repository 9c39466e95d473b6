select *
from {{ ref('fct_orders') }}
join {{ ref('dim_customers') }} using (customer)
