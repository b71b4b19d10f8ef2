-- fast.lua: slow.lua, as docs/tutorial.md leaves it.
local lines = {}
for i = 1, 5000 do
    lines[i] = "order " .. i .. " of customer " .. i % 97 .. "\n"
end
local text = table.concat(lines)
print(#text .. " bytes")
