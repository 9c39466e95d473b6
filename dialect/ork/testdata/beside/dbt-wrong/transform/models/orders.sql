select *
from {{ ref(var('raw')) }}
join {{ ref('nothing') }}
