-- New observations arrive, a station is added, and a researcher downloads the current observations.
-- user: ingest

insert into crmp.obs_raw values
    (5, 111, 101, timestamp'2016-03-02 08:00:00 UTC', -3.9),
    (6, 121, 101, timestamp'2016-03-02 08:00:00 UTC', 99.9);

-- user: data_manager

insert into crmp.meta_station values (22, 2, 'F-8');
insert into crmp.meta_history values
    (221, 22, 'Creek', 50.02, -120.91, 880.0, date'2016-03-02', null);

-- user: ingest

insert into crmp.obs_raw values
    (7, 221, 201, timestamp'2016-03-02 08:00:00 UTC', -2.5),
    (8, 211, 201, timestamp'2016-03-02 08:00:00 UTC', null),
    -- Nobody said which variable: kept, with a link to nothing.
    (9, 211, null, timestamp'2016-03-02 08:00:00 UTC', 14.0);

-- download: 1 rosa
