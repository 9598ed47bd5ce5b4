-- A column is added; earlier events have NULL in it.
-- user: owner
-- transaction: release-2

alter table esql.a add columns (note string);
update esql.a set note = 'urgent' where a_id = 3;
update esql.x set address = '4 High Street', b_id = 'b1' where _id = 'x3';
delete from esql.b where _id = 'b3';
