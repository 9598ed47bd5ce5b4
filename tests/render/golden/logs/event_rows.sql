(
    select
        `id`,
        `name`,
        `tags`,
        `edited_by`,
        concat('golden.customers:', cast(`_commit_version` as string)) as `_hist_trans_id`,
        `_changed_by` as `_hist_user`,
        case `_change_type`
            when 'insert' then 'I'
            when 'delete' then 'D'
            when 'update_preimage' then 'F'
            when 'update_postimage' then 'T'
        end as `_hist_event`,
        `_commit_timestamp` as `_hist_time`
    from (
        /* dbt_history:capture {"source": "`golden`.`customers`", "number": 2, "before": {"version": 3, "table_id": "id of customers", "populated": 1709424000000000}, "after": {"version": 5, "table_id": "id of customers", "commit": "d299b28a96bf58e268c568b62fb97104", "micros": 1709424300000000, "populated": 1709424000000000}, "about": {"events": {"key": ["id"]}, "not_null": ["id"]}} */
        select
            `change`.`row`.`c_id` as `id`,
            `change`.`row`.`c_name` as `name`,
            `change`.`row`.`c_tags` as `tags`,
            `change`.`row`.`c_edited_by` as `edited_by`,
            `change`.`kind` as `_change_type`,
            `version` as `_commit_version`,
            `time` as `_commit_timestamp`,
            `who` as `_changed_by`
        from (
            select
                `version`,
                `time`,
                case when `version` = 4 then 'anna' end as `who`,
                explode(case
                    when greatest(size(`olds`), size(`news`), `rows`) > 1
                        then raise_error(concat('dbt_history.event_rows: several rows of the source have the same key
      expected: one row per key (id) of golden.customers
      in model: model.shop.customer_events
      way out: remove the duplicates from the source, or name the columns that identify its rows
      got: ', coalesce(to_json(slice(concat(`news`, `olds`), 1, 5)), '')))
                    when `old_row` is null and `new_row` is null then null
                    when `old_row` is null then array(named_struct('kind', 'insert', 'row', `new_row`))
                    when `new_row` is null then array(named_struct('kind', 'delete', 'row', `old_row`))
                    when not `is_update` and (`old_row`.`c_id` <=> `new_row`.`c_id` and `old_row`.`c_name` <=> `new_row`.`c_name` and array_sort(transform(map_entries(`old_row`.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(`new_row`.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and `old_row`.`c_edited_by` <=> `new_row`.`c_edited_by`)
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
                        `is_double`, slice(filter(`olds`, (one, place) -> size(filter(slice(`olds`, 1, place + 1), another -> (one.`c_id` <=> another.`c_id` and one.`c_name` <=> another.`c_name` and array_sort(transform(map_entries(one.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(another.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and one.`c_edited_by` <=> another.`c_edited_by`))) > size(filter(`news`, another -> (one.`c_id` <=> another.`c_id` and one.`c_name` <=> another.`c_name` and array_sort(transform(map_entries(one.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(another.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and one.`c_edited_by` <=> another.`c_edited_by`)))), 1, 1), `olds`
                    ) as `olds`,
                    if(`is_double`, filter(`news`, (one, place) -> size(filter(slice(`news`, 1, place + 1), another -> (one.`c_id` <=> another.`c_id` and one.`c_name` <=> another.`c_name` and array_sort(transform(map_entries(one.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(another.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and one.`c_edited_by` <=> another.`c_edited_by`))) > size(filter(`olds`, another -> (one.`c_id` <=> another.`c_id` and one.`c_name` <=> another.`c_name` and array_sort(transform(map_entries(one.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(another.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and one.`c_edited_by` <=> another.`c_edited_by`)))), `news`) as `news`
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
                                                    'c_name', `name`,
                                                    'c_tags', `tags`,
                                                    'c_edited_by', `edited_by`
                                                ) as `image`
                                            from table_changes('`golden`.`customers`', 4, 5)
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
    ) as changes
)
