-- A scientist reverts corrections of one station; another station is moved to the other network.
-- user: scientist

update crmp.obs_raw set datum = -4.7 where obs_raw_id = 1;
insert into crmp.obs_raw values (2, 111, 102, timestamp'2016-03-01 08:00:00 UTC', 2.2);
delete from crmp.obs_raw where obs_raw_id = 7;
delete from crmp.meta_history where history_id = 221;
delete from crmp.meta_station where station_id = 22;
update crmp.meta_station set network_id = 2 where station_id = 12;

-- download: 3 rosa
