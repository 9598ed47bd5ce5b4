-- A log of edits on branches, with the roads of a town.
-- user: importer

create database if not exists naksha;

create table naksha.edits (
    txn bigint not null,
    position bigint not null,
    action string,
    branch string not null,
    id string not null,
    app_id string,
    author string,
    message string,
    at timestamp,
    mode string,
    expected_uuid string,
    properties string
) using delta;

insert into naksha.edits values
(1, 0, 'CREATE', 'main', 'r1', 'importer', null, 'first import', timestamp'2024-04-01 08:00:00', 'all_or_nothing', null, '{"name": "Main Street", "speed": 50}'),
(1, 1, 'CREATE', 'main', 'r2', 'importer', null, 'first import', timestamp'2024-04-01 08:00:00', 'all_or_nothing', null, '{"name": "Station Road", "speed": 30}'),
(1, 2, 'CREATE', 'main', 'r3', 'importer', null, 'first import', timestamp'2024-04-01 08:00:00', 'all_or_nothing', null, '{"name": "Mill Lane", "speed": 30}');

-- dbt: run --select naksha_map
