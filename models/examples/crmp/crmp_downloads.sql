{{
    config(
        materialized='table',
    )
}}

{% set downloads = source('crmp', 'downloads') %}
{% set mirrors = [
    ref('meta_network_hx'),
    ref('meta_station_hx'),
    ref('meta_history_hx'),
    ref('meta_vars_hx'),
    ref('obs_raw_hx'),
] %}

-- The tuple of ids that a download page would show: a version of all five tables.
{% for number in [1, 2, 3] %}
    select
        downloads.download_id,
        downloads.researcher,
        downloads.downloaded_at,
        bounds.*
    from {{ downloads }} as downloads
    cross join {{ dbt_history.history_tuple(
        mirrors,
        at='select max(downloaded_at) from ' ~ downloads ~ ' where download_id = ' ~ number,
    ) }} as bounds
    where downloads.download_id = {{ number }}
    {% if not loop.last %}union all{% endif %}
{% endfor %}
