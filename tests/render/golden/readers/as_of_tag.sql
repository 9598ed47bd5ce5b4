(
    select * from golden.records
    where `valid_from` <= (
        select
            if(
                count(*) = 0,
                raise_error('dbt_history.as_of: there is no tag of this name for the table golden.records\n  got: year\'s end\n  way out: dbt run-operation create_tag; existing tags are in golden.history_marks'),
                max(try_cast(instant as timestamp))
            )
        from `golden`.`history_marks`
        where kind = 'tag' and name = 'year\'s end'
            and table_name = 'records'
    )
        and (`valid_to` > (
        select
            if(
                count(*) = 0,
                raise_error('dbt_history.as_of: there is no tag of this name for the table golden.records\n  got: year\'s end\n  way out: dbt run-operation create_tag; existing tags are in golden.history_marks'),
                max(try_cast(instant as timestamp))
            )
        from `golden`.`history_marks`
        where kind = 'tag' and name = 'year\'s end'
            and table_name = 'records'
    ) or `valid_to` is null)
)
