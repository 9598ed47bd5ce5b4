-- Both changed the speed of Main Street: the merge lists it and writes nothing.
-- refused: r1 properties speed
-- dbt: run-operation merge_branch {table: naksha_map, writes: naksha.edits, branches: naksha.branches, branch: old_town, app_id: editor, author: bob, payload: [properties], json: [properties]}

-- Bob resolves the conflict with Ann's value.
-- user: bob

insert into naksha.edits values
(5, 0, 'UPDATE', 'old_town', 'r1', 'editor', 'bob', 'as Ann says', timestamp'2024-04-04 09:00:00', 'all_or_nothing', null, '{"name": "Main Street", "speed": 40}');

-- dbt: run --select naksha_map
-- dbt: run-operation merge_branch {table: naksha_map, writes: naksha.edits, branches: naksha.branches, branch: old_town, app_id: editor, author: bob, message: calm old town, at: "2024-04-04 10:00:00", payload: [properties], json: [properties]}
-- dbt: run --select naksha_map
-- dbt: run-operation create_tag {tag: calm_old_town, table: naksha_map, at: 6, author: bob, reason: as merged}

-- After the tag the map is edited again.
-- user: ann

insert into naksha.edits values
(7, 0, 'UPDATE', 'main', 'r5', 'editor', 'ann', 'works', timestamp'2024-04-05 08:00:00', 'all_or_nothing', null, '{"name": "Ring Road", "speed": 50}');

-- dbt: run --select naksha_map naksha_draft_conflicts
