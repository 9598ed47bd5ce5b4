-- The main tables, with rows from before tracking. Row tracking keeps who wrote them.
-- user: data_manager

create database if not exists crmp;

create table crmp.meta_network (
    network_id bigint not null,
    network_name string,
    description string,
    is_published boolean
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',
    'delta.enableRowTracking' = 'true');

create table crmp.meta_station (
    station_id bigint not null,
    network_id bigint,
    native_id string
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',
    'delta.enableRowTracking' = 'true');

create table crmp.meta_history (
    history_id bigint not null,
    station_id bigint,
    station_name string,
    latitude double,
    longitude double,
    elevation_m double,
    started_on date,
    ended_on date
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',
    'delta.enableRowTracking' = 'true');

create table crmp.meta_vars (
    vars_id bigint not null,
    network_id bigint,
    variable_name string,
    unit string
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',
    'delta.enableRowTracking' = 'true');

create table crmp.obs_raw (
    obs_raw_id bigint not null,
    history_id bigint,
    vars_id bigint,
    observed_at timestamp,
    datum double
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',
    'delta.enableRowTracking' = 'true');

-- The portal's downloads, and a copy of the delivered rows, which the example compares with the rebuilt ones.
create table crmp.downloads (
    download_id bigint not null,
    researcher string,
    downloaded_at timestamp
) using delta;

create table crmp.downloaded_rows (
    download_id bigint not null,
    obs_raw_id bigint,
    network_name string,
    native_id string,
    station_name string,
    elevation_m double,
    variable_name string,
    unit string,
    observed_at timestamp,
    datum double
) using delta;

insert into crmp.meta_network values
    (1, 'MoTI', 'Roads', true),
    (2, 'FLNRO', 'Fire weather', true);

insert into crmp.meta_station values
    (11, 1, '10001'),
    (12, 1, '10002'),
    (21, 2, 'F-7');

insert into crmp.meta_history values
    (111, 11, 'Summit', 49.58, -121.12, 1230.0, date'2014-05-01', null),
    (121, 12, 'Bridge', 49.61, -121.04, 640.0, date'2014-05-01', null),
    (211, 21, 'Lookout', 50.10, -120.80, 1522.5, date'2012-07-15', null);

insert into crmp.meta_vars values
    (101, 1, 'air_temperature', 'degC'),
    (102, 1, 'precipitation', 'mm'),
    (201, 2, 'air_temperature', 'degC');

insert into crmp.obs_raw values
    (1, 111, 101, timestamp'2016-03-01 08:00:00 UTC', -4.5),
    (2, 111, 102, timestamp'2016-03-01 08:00:00 UTC', 2.0),
    (3, 121, 101, timestamp'2016-03-01 08:00:00 UTC', 1.2),
    (4, 211, 201, timestamp'2016-03-01 08:00:00 UTC', -6.0);
