select * from {{ ref(var('orders')) }}
