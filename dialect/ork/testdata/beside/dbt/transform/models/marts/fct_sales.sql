select * from {{ ref('orders') }} join {{ ref('stg_customers') }}
