-- Bob drafts a calmer old town on a branch: lower speeds, two renamed roads, a path instead of Mill Lane.
-- dbt: run-operation create_branch {table: naksha_map, writes: naksha.edits, branches: naksha.branches, branch: old_town, author: bob, reason: calm traffic}
-- user: bob

insert into naksha.edits values
(2, 0, 'UPDATE', 'old_town', 'r1', 'editor', 'bob', 'calm traffic', timestamp'2024-04-02 09:00:00', 'all_or_nothing', null, '{"name": "Main Street", "speed": 30}'),
(2, 1, 'UPDATE', 'old_town', 'r2', 'editor', 'bob', 'calm traffic', timestamp'2024-04-02 09:00:00', 'all_or_nothing', null, '{"name": "Station Square", "speed": 30}');
insert into naksha.edits values
(3, 0, 'DELETE', 'old_town', 'r3', 'editor', 'bob', 'a path', timestamp'2024-04-02 15:00:00', 'all_or_nothing', null, null),
(3, 1, 'CREATE', 'old_town', 'r4', 'editor', 'bob', 'a path', timestamp'2024-04-02 15:00:00', 'all_or_nothing', null, '{"name": "Church Walk", "speed": 5}');

-- Meanwhile Ann edits the published map.
-- user: ann

insert into naksha.edits values
(4, 0, 'UPDATE', 'main', 'r1', 'editor', 'ann', 'new signs', timestamp'2024-04-03 11:00:00', 'all_or_nothing', null, '{"name": "Main Street", "speed": 40}'),
(4, 1, 'UPDATE', 'main', 'r2', 'editor', 'ann', 'new signs', timestamp'2024-04-03 11:00:00', 'all_or_nothing', null, '{"name": "Station Road", "speed": 20}'),
(4, 2, 'CREATE', 'main', 'r5', 'editor', 'ann', 'new signs', timestamp'2024-04-03 11:00:00', 'all_or_nothing', null, '{"name": "Ring Road", "speed": 70}');

-- dbt: run --select naksha_map naksha_draft_conflicts
