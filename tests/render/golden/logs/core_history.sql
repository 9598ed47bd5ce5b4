(
    select trans_id, min(`user`) as `user`, `table`, case temp.event when 'insert' then 1 when 'delete' then 2 when 'update' then 3 when 'gap' then 0 end as event, min(at) as at
    from golden.inbox as temp
    group by trans_id, `table`, case temp.event when 'insert' then 1 when 'delete' then 2 when 'update' then 3 when 'gap' then 0 end
)
