-- Months later a network checks its data: it corrects and removes values, and corrects a station's location and a unit.
-- user: quality_check

update crmp.obs_raw set datum = 0.4 where obs_raw_id = 6;
delete from crmp.obs_raw where obs_raw_id in (2, 9);
update crmp.meta_history set elevation_m = 1284.0, station_name = 'Summit east' where history_id = 111;
update crmp.meta_vars set unit = 'K' where vars_id = 201;
update crmp.obs_raw set datum = datum + 273.15 where vars_id = 201;

-- download: 2 omar

-- user: data_manager

update crmp.meta_network set description = 'Roads and bridges' where network_id = 1;
