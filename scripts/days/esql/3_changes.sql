-- user: bob
-- transaction: change-1

update esql.x set pieces = 12 where x_id = 1;
update esql.a set label = 'second' where a_id = 2;

-- A user at a console: without a transaction name, each commit is a separate transaction.
-- user: ann

insert into esql.x values (2, 2, 2, 1), (3, 2, null, 5);
delete from esql.x where x_id = 2;
