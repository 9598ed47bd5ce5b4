-- user: bob
-- transaction: change-1

update esql.x set address = '2 High Street' where _id = 'x1';
update esql.a set label = 'second' where a_id = 2;

-- A user at a console: without a transaction name, each commit is a separate transaction.
-- user: ann

insert into esql.x values ('x2', 'Smith', '3 High Street', 'b2'), ('x3', 'Weber', null, null);
delete from esql.x where _id = 'x2';

-- The transaction of the documentation.
-- user: xyz
-- transaction: 122323

insert into esql.a values (3, 'A3', null);
delete from esql.b where _id = 'b2';
