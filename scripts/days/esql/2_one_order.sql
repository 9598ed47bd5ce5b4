-- One transaction of the application writes three tables; each commit names it.
-- user: ann
-- transaction: order-1

insert into esql.a values (1, 'A1', 'first'), (2, 'A2', null);
insert into esql.b values (1, 9.50), (2, 12.00);
insert into esql.x values (1, 1, 1, 10);
