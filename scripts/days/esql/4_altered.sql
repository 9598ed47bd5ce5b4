-- A column is added; earlier events have NULL in it.
-- user: owner
-- transaction: release-2

alter table esql.x add columns (note string);
update esql.x set note = 'urgent', pieces = 6 where x_id = 3;
delete from esql.b where b_id = 2;
