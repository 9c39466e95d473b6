select o.*, c.name as country
from {{ source('shop', 'orders') }} o
join {{ ref('countries') }} c on c.code = o.country
