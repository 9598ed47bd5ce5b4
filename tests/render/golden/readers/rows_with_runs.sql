(
    with

    commits as (

        select
            `invocation_id`, `author`, `application`, `message`,
            `at`,
            `last_version`,
            explode(`versions`) as version
        from golden.runs as written
        where `schema` = 'golden'
            and `table` = 'records'

    ),

    runs as (

        select
            version,
            max_by(struct(`invocation_id`, `author`, `application`, `message`), struct(`at`, `last_version`)) as run
        from commits
        group by version

    ),

    history as (

        select
            *,
            `_metadata`.`row_commit_version` as `_commit_version`
        from golden.records

    )

    select
        history.*,
        runs.run.`invocation_id` as `_invocation_id`,
        runs.run.`author` as `_author`,
        runs.run.`application` as `_application`,
        runs.run.`message` as `_message`
    from history
    left outer join runs on history.`_commit_version` = runs.version
)
