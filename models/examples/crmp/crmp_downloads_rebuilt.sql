{{
    config(
        materialized='table',
    )
}}

{% set downloads = source('crmp', 'downloads') %}

-- All five tables at the instant of each download: exactly the rows that were downloaded.
{% for number in [1, 2, 3] %}
    {% set at = {
        'up_to': 'select max(downloaded_at) from ' ~ downloads ~ ' where download_id = ' ~ number,
        'by': 'mod_time',
    } %}
    select
        {{ number }} as download_id,
        observations.obs_raw_id,
        networks.network_name,
        stations.native_id,
        histories.station_name,
        histories.elevation_m,
        variables.variable_name,
        variables.unit,
        observations.observed_at,
        observations.datum
    from {{ dbt_history.latest(ref('obs_raw_hx'), 'obs_raw_id', **at) }} as observations
    inner join {{ dbt_history.latest(ref('meta_vars_hx'), 'vars_id', **at) }} as variables
        on observations.vars_id = variables.vars_id
    inner join {{ dbt_history.latest(ref('meta_history_hx'), 'history_id', **at) }} as histories
        on observations.history_id = histories.history_id
    inner join {{ dbt_history.latest(ref('meta_station_hx'), 'station_id', **at) }} as stations
        on histories.station_id = stations.station_id
    inner join {{ dbt_history.latest(ref('meta_network_hx'), 'network_id', **at) }} as networks
        on stations.network_id = networks.network_id
    {% if not loop.last %}union all{% endif %}
{% endfor %}
