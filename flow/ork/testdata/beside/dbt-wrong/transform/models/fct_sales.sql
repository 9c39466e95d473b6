select * from {{ ref('orders') }}
