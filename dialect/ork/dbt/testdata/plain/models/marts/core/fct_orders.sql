-- depends_on: {{ ref('stg_payments') }}
{% if execute %}
select * from {{ builtins.ref('stg_orders') }}, {{ helper.ref('whatever') }}
{% endif %}
{% raw %} {{ ref('in_the_docs') }} {% endraw %}
