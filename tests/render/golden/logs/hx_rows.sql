/* dbt_history:ids {"last": 40, "text": "31be9efc74284e2115126ac2cc377d82"} */
(
    with changes as (
        select * from (
            /* dbt_history:capture {"source": "`golden`.`stations`", "number": 2, "before": {"version": 5, "table_id": "id of stations", "populated": 1709424000000000}, "after": {"version": 7, "table_id": "id of stations", "commit": "4ed49360f75c1a5c6332c8a5381c3262", "micros": 1709424420000000, "populated": 1709424000000000}, "about": {"hx": {"id": "stations_hx_id", "key": ["id"], "links": ["networks_hx_id"]}}} */
            select
                `change`.`row`.`c_id` as `id`,
                `change`.`row`.`c_network` as `network`,
                `change`.`row`.`c_mod_time` as `mod_time`,
                `change`.`row`.`c_mod_user` as `mod_user`,
                `change`.`kind` as `_change_type`,
                `version` as `_commit_version`,
                `time` as `_commit_timestamp`,
                `who` as `_changed_by`
            from (
                select
                    `version`,
                    `time`,
                    cast(`new_row`.`c_mod_user` as string) as `who`,
                    explode(case
                        when greatest(size(`olds`), size(`news`), `rows`) > 1
                            then raise_error(concat('dbt_history.hx_rows: several rows of the source have the same key
          expected: one row per key (id) of golden.stations
          in model: model.shop.stations_hx
          way out: remove the duplicates from the source, or name the columns that identify its rows
          got: ', coalesce(to_json(slice(concat(`news`, `olds`), 1, 5)), '')))
                        when `old_row` is null and `new_row` is null then null
                        when `old_row` is null then array(named_struct('kind', 'insert', 'row', `new_row`))
                        when `new_row` is null then array(named_struct('kind', 'delete', 'row', `old_row`))
                        when not `is_update` and (`old_row`.`c_id` <=> `new_row`.`c_id` and `old_row`.`c_network` <=> `new_row`.`c_network`)
                            then null
                        else array(
                            named_struct('kind', 'update_preimage', 'row', `old_row`),
                            named_struct('kind', 'update_postimage', 'row', `new_row`)
                        )
                    end) as `change`
                from (
                    select
                        *,
                        get(`olds`, 0) as `old_row`,
                        get(`news`, 0) as `new_row`
                    from (select
                        * except (`olds`, `news`),
                        if(
                            `is_double`, slice(filter(`olds`, (one, place) -> size(filter(slice(`olds`, 1, place + 1), another -> (one.`c_id` <=> another.`c_id` and one.`c_network` <=> another.`c_network` and one.`c_mod_time` <=> another.`c_mod_time` and one.`c_mod_user` <=> another.`c_mod_user`))) > size(filter(`news`, another -> (one.`c_id` <=> another.`c_id` and one.`c_network` <=> another.`c_network` and one.`c_mod_time` <=> another.`c_mod_time` and one.`c_mod_user` <=> another.`c_mod_user`)))), 1, 1), `olds`
                        ) as `olds`,
                        if(`is_double`, filter(`news`, (one, place) -> size(filter(slice(`news`, 1, place + 1), another -> (one.`c_id` <=> another.`c_id` and one.`c_network` <=> another.`c_network` and one.`c_mod_time` <=> another.`c_mod_time` and one.`c_mod_user` <=> another.`c_mod_user`))) > size(filter(`olds`, another -> (one.`c_id` <=> another.`c_id` and one.`c_network` <=> another.`c_network` and one.`c_mod_time` <=> another.`c_mod_time` and one.`c_mod_user` <=> another.`c_mod_user`)))), `news`) as `news`
                    from (
                        select
                            max(`version`) as `version`,
                            max_by(`time`, `version`) as `time`,
                            bool_or(`is_update`) as `is_update`,
                            flatten(collect_list(`olds`)) as `olds`,
                            flatten(collect_list(`news`)) as `news`,
                            max_by(`rows`, `version`) as `rows`,
                            `is_double`
                        from (
                            select
                                *,
                                count_if(greatest(`rows` - size(`news`) + size(`olds`), size(`olds`)) <= 1) over (
                                    partition by `key_1` order by `version`
                                ) as `place`
                            from (
                                select
                                    *,
                                    greatest(
                                        `rows`, `rows` - size(`news`) + size(`olds`), size(`olds`), size(`news`)
                                    ) > 1 as `is_double`
                                from (
                                    select
                                        * except (`rows`),
                                        first(size(`olds`)) over (partition by `key_1` order by `version`)
                                        + sum(size(`news`) - size(`olds`)) over (
                                            partition by `key_1` order by `version`
                                        ) as `rows`
                                    from (
                                        select
                                            `key_1`,
                                            `version`,
                                            max(`time`) as `time`,
                                            bool_or(`is_update`) as `is_update`,
                                            collect_list(if(`is_new`, null, `image`)) as `olds`,
                                            collect_list(if(`is_new`, `image`, null)) as `news`,
                                            count_if(`is_new`) as `rows`
                                        from (
                                            select
                                                *,
                                                `image`.`c_id` as `key_1`
                                            from (
                                                select
                                                    `_commit_version` as `version`,
                                                    `_commit_timestamp` as `time`,
                                                    `_change_type` in ('insert', 'update_postimage') as `is_new`,
                                                    `_change_type` in ('update_preimage', 'update_postimage') as `is_update`,
                                                    named_struct(
                                                        'c_id', `id`,
                                                        'c_network', `network`,
                                                        'c_mod_time', `mod_time`,
                                                        'c_mod_user', `mod_user`
                                                    ) as `image`
                                                from table_changes('`golden`.`stations`', 6, 7)
                                            ) as `images`
                                            distribute by `key_1`
                                        ) as `keyed`
                                        group by `key_1`, `version`
                                    ) as `versions`
                                ) as `counted`
                            ) as `marked`
                        ) as `ranked`
                        group by `key_1`, `is_double`, `place`
                    ) as `collapsed`) as `images_of_keys`
                ) as `keys`
            ) as `found`
        ) as captured
        where `_change_type` <> 'update_preimage'
    ),
    numbered as (
        select
            `id`,
            `network`,
            `_commit_timestamp` as `mod_time`,
            `_changed_by` as `mod_user`,
            `_change_type` = 'delete' as `deleted`,
            40L + row_number() over (
                order by `_commit_version`, `id`
            ) as `stations_hx_id`,
            `_commit_timestamp` as `__until`
        from changes
    ),
    link_1 as (
        select /*+ broadcast(numbered) */
                numbered.`stations_hx_id` as `__row`,
                max(referenced.`__id`) as `__link`
            from numbered
            inner join (select `id` as `__key_1`, `networks_hx_id` as `__id`, case when `mod_time` <= timestamp_micros(1709424000000000L) then timestamp_micros(0L) else `mod_time` end as `__time` from `golden`.`networks_hx`) as referenced
                on referenced.`__time` <= numbered.`__until`
                and case when typeof(referenced.`__key_1`) = 'string' then try_cast(referenced.`__key_1` as bigint) = numbered.`network` else referenced.`__key_1` = numbered.`network` end
            group by numbered.`stations_hx_id`
    )
    select
        numbered.`id`,
        numbered.`network`,
        numbered.`mod_time`,
        numbered.`mod_user`,
        numbered.`deleted`,
        numbered.`stations_hx_id`,
        link_1.`__link` as `networks_hx_id`
    from numbered
    left join link_1
        on numbered.`stations_hx_id` = link_1.`__row`
)
