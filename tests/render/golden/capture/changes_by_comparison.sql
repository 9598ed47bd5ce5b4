(
    /* dbt_history:capture {"source": "`golden`.`customers`", "number": 2, "before": {"version": 3, "table_id": "id of customers", "populated": 1709424000000000}, "after": {"version": 5, "table_id": "id of customers", "commit": "d299b28a96bf58e268c568b62fb97104", "micros": 1709424300000000, "populated": 1709424000000000}, "about": {}} */
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
            cast(null as string) as `who`,
            explode(case
                when greatest(size(`olds`), size(`news`), `rows`) > 1
                    then raise_error(concat('dbt_history.changes: several rows of the source have the same key
  expected: one row per key (id) of golden.customers
  in model: model.shop.customer_changes
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
                `key_1`,
                `version`,
                max(`time`) as `time`,
                bool_or(`is_update`) as `is_update`,
                max(`commit`) as `commit`,
                collect_list(if(`is_new`, null, `image`)) as `olds`,
                collect_list(if(`is_new`, `image`, null)) as `news`,
                count_if(`is_new`) as `rows`
            from (
                select
                    *,
                    `image`.`c_id` as `key_1`
                from (
                    select
                        5L as `version`,
                        timestamp_micros(1709424300000000L) as `time`,
                        true as `is_new`,
                        false as `is_update`,
                        cast(null as bigint) as `commit`,
                        named_struct(
                            'c_id', `id`,
                            'c_name', `name`,
                            'c_tags', `tags`,
                            'c_edited_by', `edited_by`
                        ) as `image`
                    from `golden`.`customers` version as of 5
                    union all
                    select
                        5L as `version`,
                        timestamp_micros(1709424300000000L) as `time`,
                        false as `is_new`,
                        false as `is_update`,
                        cast(null as bigint) as `commit`,
                        named_struct(
                            'c_id', `id`,
                            'c_name', `name`,
                            'c_tags', `tags`,
                            'c_edited_by', `edited_by`
                        ) as `image`
                    from (select `id`, `name`, `tags`, `edited_by` from (select *, row_number() over (partition by `id` order by `_commit_version` desc) as `__place` from `golden`.`customer_changes` where if(`_change_type` is null, raise_error('dbt_history.changes: the model\'s table has rows without _change_type; no row was written\n  expected: a table that has _change_type since its first row, for a difference (method diff, or no feed that can be read)\n  in model: model.shop.customer_changes\n  way out: return these columns in the SELECT and begin with the rows that the source has then: give the model another alias, or run it once with --full-refresh (meta.history.allow_full_refresh: true)'), `_change_type` <> 'update_preimage')) as `newest` where `__place` = 1 and `_change_type` <> 'delete') as `state`
                ) as `images`
            ) as `keyed`
            group by `key_1`, `version`) as `images_of_keys`
        ) as `keys`
    ) as `found`
)
